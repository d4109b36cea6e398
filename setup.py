"""Build the native decoder (`native/`), which is optional. Everything else about the package is in pyproject.toml.

    pip install .                   a compiler and Python.h at hand: a wheel of this platform with the native decoder
                                    none: the pure-Python decoder, no error
    KCLIENT_PURE=1 pip wheel .      a wheel for every platform, without the native decoder
    KCLIENT_NATIVE=1 pip wheel .    an error where the extension cannot be built: for wheels that are published

The extension uses the limited API of Python 3.11, so one wheel of a platform serves 3.11 and all later versions.

kclient/generated is a symbolic link to ../generated, and kclient/error_pages to ../docs/errors. Git writes files in
their place where it may not make links, as on Windows by default (core.symlinks=false). A wheel is built there all the
same; what needs the links says so.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import sysconfig
import tomllib
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

LIMITED_API = "0x030B0000"

# Free-threaded builds of Python have no limited API before 3.15.
is_pure = (
    os.environ.get("KCLIENT_PURE", "0") != "0"
    or bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    or sys.implementation.name != "cpython"
)

LINKS = {"generated": "generated", "error_pages": "docs/errors"}
"""Link in kclient/ → the folder that it leads to."""
NOT_LINKED = [name for name in LINKS if not Path("kclient", name).is_dir()]
NO_LINK = """
kclient/generated and kclient/error_pages must be symbolic links to ../generated and ../docs/errors, and are not: this
clone was made by a git that may not make links (core.symlinks=false). Allow them (on Windows: developer mode), and
type

    git config core.symlinks true
    git checkout kclient/generated kclient/error_pages

An ordinary "pip install ." needs no link; an editable install and a source distribution do.
"""


class BuildPython(build_py):
    """Puts the generated codecs and the pages of errors into a wheel, also where the links to them are missing."""

    def run(self) -> None:
        if NOT_LINKED and self.editable_mode:
            raise SystemExit(NO_LINK)
        super().run()
        for name in NOT_LINKED:
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(
                LINKS[name], Path(self.build_lib, "kclient", name), ignore=ignored, dirs_exist_ok=True
            )


class SourceDistribution(sdist):
    """Holds what the links lead to."""

    def run(self) -> None:
        if NOT_LINKED:
            raise SystemExit(NO_LINK)
        super().run()


native = Extension(
    "kclient.records._native",
    ["native/decoder.c", "native/batches.c", "native/records.c", "native/iteration.c", "native/arrow.c"],
    depends=["native/native.h"],
    define_macros=[("Py_LIMITED_API", LIMITED_API)],
    py_limited_api=True,
    optional=os.environ.get("KCLIENT_NATIVE", "0") == "0",
)

LINK = re.compile(r"(\]\()(?![a-z]+:|#)([^)#]*)")


def long_description() -> str:
    """Return README.md with absolute links, because an index page has no files beside it."""
    source = tomllib.loads(Path("pyproject.toml").read_text())["project"]["urls"]["Source"]
    readme = Path("README.md").read_text(encoding="utf-8")
    return LINK.sub(lambda link: f"{link[1]}{source}/{kind_of(link[2])}/main/{link[2]}", readme)


def kind_of(path: str) -> str:
    """Return how the address of a path continues: pictures are shown as they are, directories are listed."""
    if path.endswith((".svg", ".png")):
        return "raw"
    return "blob" if "." in path.rsplit("/", 1)[-1] else "tree"


setup(
    long_description=long_description(),
    long_description_content_type="text/markdown",
    cmdclass={"build_py": BuildPython, "sdist": SourceDistribution},
    ext_modules=[] if is_pure else [native],
    options={} if is_pure else {"bdist_wheel": {"py_limited_api": "cp311"}},
)
