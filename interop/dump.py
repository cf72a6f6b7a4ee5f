"""What Apache Kafka's DumpLogSegments prints of a directory, `highwater log dump` prints too.

Every file that both know: logs with compressed batches, transactions and control batches, indexes,
producer and transaction state, the metadata log and its snapshots, and the logs of coordinators,
each with its decoder. Kafka's dump may not complain of anything.
"""

import argparse
import os
import subprocess
import sys

KINDS = (".log", ".index", ".timeindex", ".snapshot", ".txnindex", ".checkpoint")
DECODERS = {
    "__cluster_metadata": "--cluster-metadata-decoder",
    "__consumer_offsets": "--offsets-decoder",
    "__transaction_state": "--transaction-log-decoder",
    "__share_group_state": "--share-group-state-decoder",
}
COMPLAINTS = ("isvalid: false", "Found ", "Error", "Mismatch", "xception", "orrupt", "Could not")


def files_of(data):
    """The files that are dumped, by decoder. Kafka's dump ends at an index without an entry."""
    found = {}
    for folder in sorted(os.listdir(data)):
        path = os.path.join(data, folder)
        if not os.path.isdir(path):
            continue
        decoder = DECODERS.get(folder.rsplit("-", 1)[0])
        for name in sorted(os.listdir(path)):
            file = os.path.join(path, name)
            if name.endswith(KINDS) and has_entries(file):
                found.setdefault(decoder, []).append(file)
    return found


def has_entries(file):
    """Whether there is anything but the zeros of a file that is to be filled later."""
    with open(file, "rb") as opened:
        return any(opened.read(4096))


def of_kafka(libs, options, files):
    """What Apache Kafka prints."""
    command = ["java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-cp", os.path.join(libs, "*")]
    command += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
    command += ["org.apache.kafka.tools.DumpLogSegments", *options, "--files", ",".join(files)]
    # Its closing notes go to standard error.
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.run(command, check=True, text=True, **both).stdout


def of_highwater(binary, options, files):
    """What highwater prints."""
    command = [binary, "log", "dump", *options, *files]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def compare(data, binary, libs, kinds=()):
    """Fails at the first difference; there must be a file of each of `kinds`."""
    by_decoder = files_of(data)
    everything = [file for files in by_decoder.values() for file in files]
    for kind in kinds:
        if not any(file.endswith(kind) for file in everything):
            raise RuntimeError(f"there is no {kind} file in {data}")
    for decoder, files in by_decoder.items():
        for options in (["--deep-iteration", "--print-data-log"], []):
            options = options + ([decoder] if decoder else [])
            theirs, ours = of_kafka(libs, options, files), of_highwater(binary, options, files)
            same(in_order(theirs), in_order(ours), options)


def in_order(text):
    """Kafka's closing notes on each log, whose first offset it takes for one after -1, come in no
    order of their own."""
    lines = text.splitlines()
    notes = [at for at, line in enumerate(lines) if line.startswith("Non-consecutive offsets in")]
    if not notes:
        return lines
    blocks = zip(notes, notes[1:] + [len(lines)])
    return lines[: notes[0]] + sorted(" ".join(lines[at:end]) for at, end in blocks)


def same(theirs, ours, options):
    """Line by line; nothing that Kafka complains of is fine, even when both do."""
    file = None
    for at, line in enumerate(theirs):
        if line.startswith("Dumping "):
            file = line.removeprefix("Dumping ")
        if any(complaint in line for complaint in COMPLAINTS):
            raise RuntimeError(f"{file} {options}: Kafka complains: {line}")
        if at >= len(ours) or ours[at] != line:
            own = ours[at] if at < len(ours) else "(the end)"
            raise RuntimeError(f"{file} {options}:\n  Kafka: {line}\n  ours:  {own}")
    if len(ours) > len(theirs):
        raise RuntimeError(f"{file} {options}: ours goes on: {ours[len(theirs)]}")


def main():
    """Compares one directory, for looking at a difference by hand."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--kafka-libs", required=True)
    parser.add_argument("data")
    options = parser.parse_args()
    compare(options.data, options.binary, options.kafka_libs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
