"""What every member in Python does alike: arguments, events, the end."""

import json
import signal
import sys
import time


class Member:
    """The process of one member."""

    def __init__(self):
        self.bootstrap, self.group, self.topic, self.strategy = sys.argv[1:5]
        self.is_asked_to_stop = False
        signal.signal(signal.SIGTERM, self._stop)

    def _stop(self, _signal, _frame):
        self.is_asked_to_stop = True

    def assigned(self, partitions):
        """It got these partitions."""
        self._tell(event="assigned", partitions=partitions)

    def revoked(self, partitions):
        """It has these partitions no more."""
        self._tell(event="revoked", partitions=partitions)

    def record(self, partition, offset, value):
        """It handled a record."""
        self._tell(event="record", partition=partition, offset=offset, value=value.decode())

    def complain(self, why):
        """Something went wrong that a member survives."""
        print(f"{time.time():.3f} {why}", file=sys.stderr, flush=True)

    def _tell(self, **event):
        print(json.dumps({"at": time.time(), **event}), flush=True)
