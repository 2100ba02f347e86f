"""What can be measured: each module has ``measure(case, folder)``, which runs in a process of its own."""
