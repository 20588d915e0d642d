"""The contract of every adapter of a marketplace: one suite, run for each of them over real HTTP.

Between the adapter and the practice market, which answers in the venue's dialect, stands a gate that counts requests
and can answer anything else instead. A new adapter is one entry in `parties.py`.
"""
