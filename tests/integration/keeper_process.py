"""Maintains a warehouse in a process of its own, until it is told to stop or killed: python keeper_process.py FOLDER"""

import signal
import sys

from viewkeeper.warehouse import Warehouse


def main() -> None:
    with Warehouse.open(sys.argv[1], create=False) as warehouse:
        signal.signal(signal.SIGTERM, lambda *_: warehouse.stop())
        print("running", flush=True)
        report = warehouse.run()
        print(report, flush=True)


if __name__ == "__main__":
    main()
