"""Build the native decoder (`native/`), which is optional. Everything else about the package is in pyproject.toml.

    pip install .                   a compiler and Python.h at hand: a wheel of this platform with the native decoder
                                    none: the pure-Python decoder, no error
    KCLIENT_PURE=1 pip wheel .      a wheel for every platform, without the native decoder
    KCLIENT_NATIVE=1 pip wheel .    an error where the extension cannot be built: for wheels that are published

The extension uses the limited API of Python 3.11, so one wheel of a platform serves 3.11 and all later versions.
"""

from __future__ import annotations

import os
import sys
import sysconfig

from setuptools import Extension, setup

LIMITED_API = "0x030B0000"

# Free-threaded builds of Python have no limited API before 3.15.
is_pure = (
    os.environ.get("KCLIENT_PURE", "0") != "0"
    or bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    or sys.implementation.name != "cpython"
)

native = Extension(
    "kclient.records._native",
    ["native/decoder.c", "native/batches.c", "native/records.c", "native/iteration.c", "native/arrow.c"],
    depends=["native/native.h"],
    define_macros=[("Py_LIMITED_API", LIMITED_API)],
    py_limited_api=True,
    optional=os.environ.get("KCLIENT_NATIVE", "0") == "0",
)

setup(
    ext_modules=[] if is_pure else [native],
    options={} if is_pure else {"bdist_wheel": {"py_limited_api": "cp311"}},
)
