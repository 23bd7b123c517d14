"""The Spark session: one long-lived session per process, tuned for many small jobs on one machine.

A session that the caller brings, a cluster's included, is used as it is.
"""

import logging
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from viewkeeper.clock import secret
from viewkeeper.errors import SparkMissing
from viewkeeper.sql.outside_sql import FUNCTIONS

if TYPE_CHECKING:
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

OLDEST_JAVA = 17
MEMORY, DEFAULT_MEMORY = "VIEWKEEPER_SPARK_MEMORY", "4g"
"""the environment variable that says how much memory Spark may take, as Spark writes it"""

SECRET = "spark.authenticate.secret"

# The default, INT96, counts nanoseconds: other readers take a year after 2262 or before 1677 for some other year.
TIMESTAMPS = {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}

SETTINGS = {
    "spark.app.name": "viewkeeper",
    # Nothing listens beyond this machine, and no web page unless it is requested.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Loopback is open to every user of the machine, and Spark's ports take serialized objects.
    "spark.authenticate": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # A refresh is a few short jobs: an exchange per core, and no pauses to re-plan. Full loads turn AQE on themselves.
    "spark.sql.adaptive.enabled": "false",
    # The files of a view are named one by one; Spark would start a job to look at more than 32 of them.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1024",
    # For every call on a frame or a column PySpark records which line of Python made it, and Spark which line of Java:
    # more than half of the time of building a frame. The lines are ours; errors quote the user's SQL with its position.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.dataFrameQueryContext.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    # FROM parquet.`/any/file`: a query reads views.
    "spark.sql.runSQLOnFiles": "false",
    **TIMESTAMPS,
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}


# Half of the start goes into compiling what runs once. Without the second compiler a first small query takes half the
# processor time; beyond some ten million rows the code that it makes would have been worth it.
BRIEF = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}


def running_session() -> "SparkSession | None":
    """The session of this process, if it has one. Which one is active, Spark knows by thread."""
    from viewkeeper.algebra.pyspark_names import PySparkRuntimeError, SparkSession

    try:
        return SparkSession.active()
    except PySparkRuntimeError:
        return None


def memory() -> str:
    """How much Spark may take."""
    return os.environ.get(MEMORY) or DEFAULT_MEMORY


def local_session(
    master: str | None = None, settings: Mapping[str, str] | None = None, *, quiet: bool = False
) -> "SparkSession":
    """The session of this process, or a new one on every core of this machine.

    With `quiet`, Spark prints nothing: what goes wrong is told by the errors that it raises. `BRIEF` are settings for a
    process that does little.
    """
    _check_java()
    # Executors run the interpreter of the driver.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if quiet:
        _silence_python_side()
    with _starting:
        return running_session() or _started(master, settings, quiet=quiet)


_starting = threading.Lock()
"""Groups of views are maintained side by side, and two of them may be the first to need a session."""


def _started(master: str | None, settings: Mapping[str, str] | None, *, quiet: bool) -> "SparkSession":
    from viewkeeper.algebra.pyspark_names import PySparkRuntimeError, SparkConf, SparkSession

    cores = str(os.cpu_count() or 2)
    conf = SparkConf().setMaster(master or "local[*]")
    conf.set("spark.driver.memory", memory()).set("spark.sql.shuffle.partitions", cores)
    # What is brought to the driver is bounded before it is requested; Spark would stop at 1 GB, however much it has.
    conf.set("spark.driver.maxResultSize", memory())
    conf.setAll([*SETTINGS.items(), *(settings or {}).items()])
    if quiet:
        with tempfile.TemporaryFile() as printed:
            try:
                _start(conf, {"stderr": printed})
            except PySparkRuntimeError as error:
                raise _did_not_start(printed) from error
    else:
        _start(conf)
    spark = SparkSession.builder.config(conf=conf).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    _forget_functions(spark)
    return spark


def _forget_functions(spark: "SparkSession") -> None:
    """Our sessions do not know the functions that leave SQL: whatever text comes to Spark, it cannot call them."""
    jvm: Any = spark.sparkContext._jvm
    registry = spark._jsparkSession.sessionState().functionRegistry()
    schema, catalog = map(jvm.scala.Option.apply, ("builtin", "system"))
    for name in FUNCTIONS:
        registry.dropFunction(jvm.org.apache.spark.sql.catalyst.FunctionIdentifier(name, schema, catalog))


def _start(conf: "SparkConf", popen: dict[str, Any] | None = None) -> None:
    """Start a JVM, then Spark in it.

    In two steps. `popen` can send the JVM's standard error to a file: settings of log4j would not silence the JVM
    itself, the launcher, and the traces of failed tasks. And the secret goes to Spark through the gateway: the settings
    that the JVM starts with stand on its command line, which every user of the machine can read.
    """
    from viewkeeper.algebra.pyspark_names import SparkContext, launch_gateway

    gateway = launch_gateway(conf, popen)  # type: ignore[no-untyped-call]
    if conf.get("spark.authenticate") == "true" and not _one_process(conf.get("spark.master") or ""):
        conf = conf.set(SECRET, conf.get(SECRET) or secret())
    SparkContext(conf=conf, gateway=gateway)


def _one_process(master: str) -> bool:
    """Whether Spark runs in one JVM, and makes the secret itself."""
    return master == "local" or master.startswith("local[")


def _silence_python_side() -> None:
    from viewkeeper.algebra.pyspark_names import PySparkLogger

    PySparkLogger.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)


def _did_not_start(printed: IO[bytes]) -> SparkMissing:
    printed.seek(0)
    lines = printed.read().decode(errors="replace").splitlines()
    told = next((line.strip() for line in lines if "rror" in line or "xception" in line), "it said nothing")
    if any("UnsupportedClassVersionError" in line for line in lines):
        return SparkMissing(
            f"Spark did not start: the Java that it found is too old for it ({_java()})",
            f"install Java {OLDEST_JAVA} or later, and let JAVA_HOME or the PATH lead to it",
        )
    return SparkMissing(
        f"Spark did not start: {told}", f"it needs Java {OLDEST_JAVA} or later, and {memory()} of memory ({MEMORY})"
    )


def _java() -> str | None:
    """The Java that Spark takes."""
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").exists():
        return str(Path(home) / "bin" / "java")
    return shutil.which("java")


def _check_java() -> None:
    if _java() is not None:
        return
    raise SparkMissing(
        "Spark runs on Java, and there is no 'java' on the PATH and no JAVA_HOME",
        f"install Java {OLDEST_JAVA} or later (on Debian and Ubuntu: apt-get install default-jre-headless)",
    )
