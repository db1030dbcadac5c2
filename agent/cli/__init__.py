"""The command line. It holds no logic of planning: it reads the call, runs the tools, prints text or JSON.

Nothing is imported here until the command runs, so that an interrupt during start-up has a handler as well.
"""


def main() -> int:
    """Run the command with the arguments of this process; returns the exit status."""
    try:
        from . import process

        process.begin()
        from .app import run

        status = run()
        process.end()
    except KeyboardInterrupt:
        from . import process

        process.end()
        status = process.EXIT_INTERRUPTED
    return status
