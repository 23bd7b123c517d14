"""An archive of the classes that Spark loads: with it a JVM starts in half of the processor time.

    python tests/spark_archive.py    makes it, if it does not exist

The suite starts some thirty JVMs. `conftest.py` gives all of them the archive, through the environment.
"""

import os
import sys
import tempfile
from pathlib import Path

from viewkeeper.errors import SparkMissing

ARCHIVE = Path(sys.prefix) / "spark.jsa"
OPTIONS = "SPARK_SUBMIT_OPTS"
"""the environment variable with the options of Java that Spark's launcher adds"""
SILENT = "-Xlog:disable -Xlog:all=error"
"""A JVM that cannot use the archive, because Java or Spark has changed, runs without it; it would print that."""

QUERY = """
    SELECT l.a % 7 AS g, COUNT(*), SUM(l.c), MIN(r.b), COUNT(DISTINCT r.c), MAX(DATE '2024-01-01' + l.a)
    FROM rows l LEFT JOIN rows r ON l.a = r.a + 1 AND r.b LIKE 'text%'
    WHERE l.a > 3 GROUP BY l.a % 7 HAVING COUNT(*) > 1 ORDER BY g
"""


def use_archive() -> None:
    """For each JVM that this process and its subprocesses start, if there is an archive."""
    if ARCHIVE.exists():
        given = os.environ.get(OPTIONS, "")
        os.environ[OPTIONS] = f"{given} -XX:SharedArchiveFile={ARCHIVE} {SILENT}".strip()


def make_archive() -> None:
    """From a session that does what most tests do; Java writes the archive when it ends."""
    from viewkeeper.algebra.pyspark_names import SparkContext
    from viewkeeper.lake.tables.spark_session import BRIEF, local_session

    made = ARCHIVE.with_suffix(".new")
    os.environ[OPTIONS] = f"-XX:ArchiveClassesAtExit={made} {SILENT}"
    spark = local_session("local[2]", BRIEF, quiet=True)
    with tempfile.TemporaryDirectory() as folder:
        rows = [(number, f"text {number}", number / 2) for number in range(100)]
        spark.createDataFrame(rows, "a INT, b STRING, c DOUBLE").write.parquet(f"{folder}/rows")
        spark.read.parquet(f"{folder}/rows").createOrReplaceTempView("rows")
        assert spark.sql(QUERY).collect()
        assert spark.sql(QUERY).toArrow().num_rows
    spark.stop()
    gateway = SparkContext._gateway
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()
    made.replace(ARCHIVE)


if __name__ == "__main__" and not ARCHIVE.exists():
    try:
        make_archive()
    except (SparkMissing, FileNotFoundError) as error:
        print(f"Java made no archive of Spark's classes, so the tests take longer: {error}", file=sys.stderr)
