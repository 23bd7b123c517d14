"""The Spark session: one long-lived session per process, tuned for many small jobs on one machine.

A session that the caller brings, a cluster's included, is used as it is.
"""

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from viewkeeper.errors import SparkMissing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OLDEST_JAVA = 17

SETTINGS = {
    "spark.app.name": "viewkeeper",
    # Nothing listens beyond this machine, and no web page unless it is asked for.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "4g",
    # A refresh is a few short jobs: an exchange per core, and no pauses to re-plan. Full loads turn AQE on themselves.
    "spark.sql.adaptive.enabled": "false",
    # The files of a view are named one by one; Spark would start a job to look at more than 32 of them.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1024",
    "spark.sql.session.timeZone": "UTC",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}


def local_session(master: str | None = None, settings: dict[str, str] | None = None) -> "SparkSession":
    """The session of this process, or a new one on every core of this machine."""
    _check_java()
    # Executors run the interpreter of the driver.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    builder = SparkSession.builder.master(master or "local[*]")
    cores = str(os.cpu_count() or 2)
    for name, value in {**SETTINGS, "spark.sql.shuffle.partitions": cores, **(settings or {})}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if (home and (Path(home) / "bin" / "java").exists()) or shutil.which("java"):
        return
    raise SparkMissing(
        "Spark runs on Java, and there is no 'java' on the PATH and no JAVA_HOME",
        f"install Java {OLDEST_JAVA} or later (on Debian and Ubuntu: apt-get install openjdk-17-jre-headless)",
    )
