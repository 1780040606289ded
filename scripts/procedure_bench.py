"""What the measurements of procedures share: a server that runs a program written for Tarantool."""
import os
import shutil
import subprocess
import tempfile
import time


class Server:
    """A program, run by this command in a folder of its own, which listens to IPROTO at `port`."""

    def __init__(self, command, port, program):
        self.folder = tempfile.mkdtemp(prefix="procedures-")
        path = os.path.join(self.folder, "init.lua")
        with open(path, "w") as file:
            file.write(program)
        self.port = port
        log = open(os.path.join(self.folder, "log"), "w")
        self.process = subprocess.Popen(
            [*command, path, str(port)], cwd=self.folder, stdout=log, stderr=log
        )
        time.sleep(2)
        if self.process.poll() is not None:
            raise SystemExit(open(log.name).read())

    def stop(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder)
