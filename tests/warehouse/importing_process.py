"""Catches up a warehouse, and prints the modules that other threads than the first one have imported.

python importing_process.py FOLDER [ROWS]       ROWS: from so many rows on, Spark computes
"""

import sys
import threading
from typing import Any

PACKAGES = ("pyspark", "py4j", "pyarrow", "deltalake", "numpy", "pandas", "psycopg", "pymysql", "pymysqlreplication")
"""those whose parts import each other"""
SPARK = "viewkeeper.algebra.pyspark_names"
"""imports all that is used of Spark, in the thread that is the first to need it"""


def main() -> None:
    imported: dict[str, str] = {}
    importing_spark: list[str] = []

    def watch(event: str, told: tuple[Any, ...]) -> None:
        thread = threading.current_thread()
        if event != "import" or thread is threading.main_thread():
            return
        if told[0] == SPARK:
            importing_spark.append(thread.name)
        within = importing_spark[-1:] == [thread.name] and getattr(sys.modules.get(SPARK), "F", None) is None
        if not within:
            imported.setdefault(told[0], thread.name)

    sys.addaudithook(watch)
    from viewkeeper import Warehouse
    from viewkeeper.algebra import adaptive
    from viewkeeper.algebra.adaptive import Engines

    def spark() -> Any:
        from viewkeeper.lake.tables.spark_session import BRIEF, local_session

        few_compiled = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
        return local_session(settings={**BRIEF, **few_compiled}, quiet=True)

    if len(sys.argv) > 2:
        adaptive.MOST_BYTES = 0
        Engines.__init__.__defaults__ = (int(sys.argv[2]), 0)
    with Warehouse.open(sys.argv[1], spark, create=False) as warehouse:
        warehouse.catch_up()
        assert not warehouse.status().halted, warehouse.status().halted
    for module, thread in sorted(imported.items()):
        # Others were looked for, and are not installed.
        if module.partition(".")[0] in PACKAGES and module in sys.modules:
            print(f"{module} in {thread}")


if __name__ == "__main__":
    main()
