"""What viewkeeper uses of PySpark; nothing else in it imports PySpark, so that one thread imports all of that.

    thread 1    import pyspark_names    executes it: imports PySpark and its parts
    thread 2    import pyspark_names    waits for thread 1

Parts of PySpark import each other. Two threads that import different parts at once may each hold what the other waits
for, and Python then gives one of them a module that is half initialized. The lock of this one module prevents that, and
a process that needs no Spark does not spend the fifth of a second that its modules take.
"""

# Imported for PySpark, which would import them later in whatever thread calls it.
import pyspark.logger.worker_io
import pyspark.sql.classic.dataframe
import pyspark.testing.utils  # noqa: F401  # the same
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext, StorageLevel
from pyspark.errors import AnalysisException, PySparkException, PySparkRuntimeError, QueryContextType
from pyspark.java_gateway import launch_gateway
from pyspark.logger import PySparkLogger
from pyspark.sql import Column, DataFrame, Observation, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import LongType, NullType, StringType, StructField, StructType, _parse_datatype_string

__all__ = [
    "AnalysisException",
    "Column",
    "DataFrame",
    "F",
    "LongType",
    "NullType",
    "Observation",
    "Py4JError",
    "PySparkException",
    "PySparkLogger",
    "PySparkRuntimeError",
    "QueryContextType",
    "SparkConf",
    "SparkContext",
    "SparkSession",
    "StorageLevel",
    "StringType",
    "StructField",
    "StructType",
    "T",
    "Window",
    "_parse_datatype_string",
    "from_arrow_schema",
    "launch_gateway",
]
