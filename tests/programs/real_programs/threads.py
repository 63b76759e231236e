"""Squares through two queues, with locks, events and conditions; prints a sum."""

import os
import queue
import sys
import threading
import time

jobs, results = queue.Queue(maxsize=16), queue.Queue()
total, lock = 0, threading.Lock()
ready = threading.Event()
turn, changed = 0, threading.Condition()


def work(number):
    global total, turn
    ready.wait()
    while (job := jobs.get()) is not None:
        results.put(job * job)
        with lock:
            total += job
    with changed:
        changed.wait_for(lambda: turn == number)
        turn += 1
        changed.notify_all()


threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
for thread in threads:
    thread.start()
ready.set()
for number in range(2000):
    jobs.put(number)
for _ in threads:
    jobs.put(None)
for thread in threads:
    thread.join()
# Python's join returns when the thread has left Python; its native thread ends a little later.
while len(os.listdir("/proc/self/task")) > 1:
    time.sleep(0.001)
print(total, sum(results.get() for _ in range(2000)), turn)
sys.exit(5)
