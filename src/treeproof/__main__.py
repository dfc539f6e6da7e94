"""``python -m treeproof`` is the ``treeproof`` command."""

from .cli import main

if __name__ == "__main__":
    main()
