"""Squares through two queues, with locks, events and conditions; prints a sum."""

import queue
import sys
import threading

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
print(total, sum(results.get() for _ in range(2000)), turn)
sys.exit(5)
