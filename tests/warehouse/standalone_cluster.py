"""A real Spark cluster on this machine, from the pyspark package: a master and workers, each a process of its own."""

import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from waiting import LONG, joined

HOME = Path(pyspark.__file__).parent


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def standalone_cluster(workers: int) -> Iterator[str]:
    """The URL of a master with so many registered workers; all of them are stopped at the end."""
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    with ExitStack() as running:
        work = running.enter_context(tempfile.TemporaryDirectory())
        master = ("master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(free_port()))
        running.enter_context(_daemon(work, master, "I have been elected leader"))
        for _ in range(workers):
            ports = ("--port", str(free_port()), "--webui-port", str(free_port()))
            limits = ("--cores", "1", "--memory", "1g", "--work-dir", work)
            worker = ("worker.Worker", "--host", "127.0.0.1", *ports, *limits, url)
            running.enter_context(_daemon(work, worker, "Successfully registered with master"))
        yield url


@contextmanager
def _daemon(work: str, command: tuple[str, ...], ready: str) -> Iterator[None]:
    name, *arguments = command
    # Its log is on stderr only if it is told so: the package's default is to say warnings alone.
    settings = Path(work, "log4j2.properties")
    settings.write_text(
        "rootLogger.level = info\nrootLogger.appenderRef.stderr.ref = stderr\nappender.stderr.type = Console\n"
        "appender.stderr.name = stderr\nappender.stderr.target = SYSTEM_ERR\n"
        "appender.stderr.layout.type = PatternLayout\nappender.stderr.layout.pattern = %m%n\n"
    )
    environment = {
        **os.environ,
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_DAEMON_JAVA_OPTS": f"-Dlog4j2.configurationFile={settings}",
        "SPARK_DAEMON_MEMORY": "256m",
    }
    drained: threading.Thread | None = None
    process = subprocess.Popen(
        [str(HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments],
        env=environment,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    assert process.stderr is not None
    try:
        said = []
        for line in process.stderr:
            said.append(line)
            if ready in line:
                break
        else:
            raise RuntimeError(f"{name} did not start:\n{''.join(said)}")
        # Nobody reads on, and a full pipe would stop it.
        drained = threading.Thread(target=process.stderr.read)
        drained.start()
        yield
    finally:
        process.terminate()
        process.wait(LONG)
        if drained is not None:
            joined(drained)
        process.stderr.close()
