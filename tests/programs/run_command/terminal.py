"""Runs a command on a terminal of its own, presses Ctrl-C and Ctrl-\\ when it is ready, then sends SIGUSR2.

Prints what the command prints, without what the terminal echoes, and its exit status.
"""
import atexit
import os
import pty
import signal
import sys

child, terminal = pty.fork()
if child == 0:
    os.execvp(sys.argv[1], sys.argv[1:])

seen = b""
# Whatever goes wrong here, the command does not outlive it.
atexit.register(lambda: os.close(terminal))
signal.alarm(60)


def wait_for(word):
    global seen
    while word not in seen:
        seen += os.read(terminal, 4096)


wait_for(b"ready")
os.write(terminal, b"\x03")
wait_for(b"INT")
os.write(terminal, b"\x1c")
wait_for(b"QUIT")
os.kill(child, signal.SIGUSR2)
try:
    while True:
        seen += os.read(terminal, 4096)
except OSError:
    pass  # The terminal's other side is closed: the command has ended.
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
for line in seen.decode().replace("^C", "").replace("^\\", "").split():
    if line in ("ready", "INT", "QUIT", "TERM", "end"):
        print(line)
print("status", status)
