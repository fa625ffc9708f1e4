"""What becomes of memory that TensorFlow frees on the CPU."""

import ctypes

# The numbers by which glibc's malloc.h names its settings.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3
_MEBIBYTE = 2**20


def keep_freed_memory():
    """Lets this process keep the memory that it frees, for later use.

    On the CPU, each training step takes and frees the same large tensors.
    glibc gives them back to the kernel every time, and getting them again,
    page by page, takes as long as computing with them
    (`benchmarks/training_step.py`). Without glibc, nothing changes.

    It belongs to programs, which own their process, as recipes and the
    `kmatch` command do, and is never called by the library.

    >>> from kmatch.memory import keep_freed_memory
    >>> keep_freed_memory()
    """
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    set_option(_TRIM_THRESHOLD, 2**31 - 1)
    set_option(_TOP_PAD, 64 * _MEBIBYTE)
    set_option(_MMAP_THRESHOLD, 32 * _MEBIBYTE)
