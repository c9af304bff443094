"""A monitor in the form of existing vendor folders: a program that makes itself a daemon."""

import argparse
import sys

import schedule  # noqa: F401 - not installed here: nobody may import this file


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("-o", required=True, help="start|stop|restart|status")
    parser.add_argument("-l", default="./logs/", help="log path")
    sys.exit(f"FlagPerf started this monitor: {parser.parse_args()}")


if __name__ == "__main__":
    main()
