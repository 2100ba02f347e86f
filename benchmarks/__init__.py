"""Speed and memory as ratios within one run: `make bench`, or `make bench QUICK=1`."""
