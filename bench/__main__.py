"""`python -m bench`: runs every measurement and prints one table, with the machine it ran on."""

from __future__ import annotations

import os
import platform

from bench import decisions, ledger, sign_in, workers


def main() -> None:
    cores = os.cpu_count()
    print(f"{platform.machine()}, {cores} cores, Linux {platform.release()}, Python {platform.python_version()}\n")
    print(f"{'what':<52} {'median':>14}   against")
    for rows in (decisions.rows, ledger.rows, sign_in.rows, workers.rows):
        for what, median, against in rows():
            print(f"{what:<52} {median:>14}   {against}", flush=True)


if __name__ == "__main__":
    main()
