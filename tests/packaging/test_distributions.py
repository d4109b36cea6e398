"""Wheel, source distribution and editable install hold the whole package, generated codecs included.

They are built from a copy of the tree by the same backend that pip calls, without a network.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = [name for name in ("kclient", "pyspark_kclient") if (ROOT / name).is_dir()]
SHIPPED = ("pyproject.toml", "setup.py", "README.md", "LICENSE", "generated", "docs/errors", *PACKAGES)
NATIVE = ("native",)
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler: cc")

# Run in a process of its own: where a package came from, and a message through the lazily loaded codecs and back.
USE = """
import sys
sys.path.insert(0, sys.argv[1])
import kclient, kclient.generated, kclient.records
from kclient.protocol import decode, encode
from kclient.protocol.registry import message_class
heartbeat = message_class("HeartbeatRequest")(group_id="delays", generation_id=7, member_id="m")
assert decode("HeartbeatRequest", 4, encode(heartbeat, 4)) == heartbeat
print(kclient.__file__, kclient.generated.__file__, sep="\\n")
"""


def build(kind: str, source: Path, target: Path, **environment: str) -> Path:
    """Call the backend's hook in the source folder; the path of what it wrote."""
    call = f"from setuptools import build_meta; print(build_meta.build_{kind}({str(target)!r}))"
    run = subprocess.run(
        [sys.executable, "-c", call],
        cwd=source,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return target / run.stdout.splitlines()[-1]


def use(path: Path) -> list[str]:
    """Import the package from a path in a fresh interpreter; the files of kclient and kclient.generated."""
    command = [sys.executable, "-I", "-c", USE, str(path)]
    run = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what a source distribution is made of, symlinks kept."""
    return copy_of(SHIPPED, tmp_path_factory.mktemp("tree"))


@pytest.fixture
def native_tree(tmp_path: Path) -> Path:
    """The same with the native decoder."""
    return copy_of((*SHIPPED, *NATIVE), tmp_path / "tree")


def copy_of(names: tuple[str, ...], folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    no_caches = shutil.ignore_patterns("__pycache__", "*.so")
    for name in names:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=no_caches)
        else:
            shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def wheel(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", tree, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution, unpacked."""
    archive = build("sdist", tree, tmp_path_factory.mktemp("sdist"))
    subprocess.run(["tar", "-xzf", archive, "-C", archive.parent], check=True)
    return archive.parent / archive.name.removesuffix(".tar.gz")


def modules(tree: Path) -> set[str]:
    """Every file of the packages as a path, the symlink followed."""
    package = (path for name in PACKAGES for path in (tree / name).rglob("*") if path.is_file())
    generated = (tree / "kclient" / "generated").glob("*.py")
    pages = (tree / "kclient" / "error_pages").glob("*.md")
    found = (path.relative_to(tree) for path in (*package, *generated, *pages))
    return {str(path) for path in found if "__pycache__" not in path.parts}


def test_the_wheel_holds_the_package_and_nothing_else(tree: Path, wheel: Path) -> None:
    assert zipfile.is_zipfile(wheel)
    with zipfile.ZipFile(wheel) as archive:
        files = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert files == modules(tree)
    assert {
        "kclient/py.typed",
        "kclient/generated/fetch_response.py",
        "kclient/error_pages/KC-601.md",
    } <= files


def test_the_source_distribution_builds_the_same_wheel(tree: Path, sdist: Path, tmp_path: Path) -> None:
    assert modules(tree) <= {str(path.relative_to(sdist)) for path in sdist.rglob("*")}
    with zipfile.ZipFile(build("wheel", sdist, tmp_path)) as archive:
        assert modules(tree) <= set(archive.namelist())


def test_the_package_runs_from_inside_a_zip(wheel: Path) -> None:
    files = use(wheel)
    assert files == [f"{wheel}/kclient/__init__.py", f"{wheel}/kclient/generated/__init__.py"]


def test_an_error_is_explained_from_inside_a_zip(wheel: Path) -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(wheel)!r})\n"
        "from kclient.cli import error_page; print(error_page.page_of('601'))"
    )
    run = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=False)
    assert run.stdout.startswith("# KC-601 · ConfigError\n"), run.stderr


def test_the_editable_install_reaches_the_tree(tree: Path, tmp_path: Path) -> None:
    editable = build("editable", tree, tmp_path / "wheel")
    site = tmp_path / "site"
    with zipfile.ZipFile(editable) as archive:
        archive.extractall(site)
    enable = f"import site; site.addsitedir({str(site)!r});"
    code = (
        enable
        + "import json, kclient, kclient.generated as g; print(json.dumps([kclient.__file__, g.__file__]))"
    )
    # -S leaves out the environment's own editable install of this project; dependencies are not needed for this.
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], cwd="/", capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == [f"{tree}/kclient/__init__.py", f"{tree}/kclient/generated/__init__.py"]


def metadata_of(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return message_from_bytes(archive.read(name))


def test_the_metadata_names_licence_python_and_extras(wheel: Path) -> None:
    metadata = metadata_of(wheel)
    with zipfile.ZipFile(wheel) as archive:
        assert any(name.endswith("licenses/LICENSE") for name in archive.namelist())
    assert metadata["Name"] == "kclient-kafka"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    assert {"arrow", "spark", "dev"} <= set(metadata.get_all("Provides-Extra", []))
    base = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert not any(line.startswith(("pyarrow", "pyspark", "jinja2")) for line in base)


def test_an_index_page_finds_the_project_and_every_page_that_it_links_to(wheel: Path) -> None:
    metadata = metadata_of(wheel)
    urls = dict(line.split(", ") for line in metadata.get_all("Project-URL", []))
    assert {"Source", "Documentation", "Changelog", "Issues"} <= urls.keys()
    assert metadata["Description-Content-Type"] == "text/markdown"
    links = re.findall(r"\]\(([^)]+)\)", str(metadata.get_payload()))
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    paths = [
        re.sub(r"^/(blob|tree|raw)/main/", "", link.removeprefix(urls["Source"]).partition("#")[0])
        for link in links
        if link.startswith(urls["Source"])
    ]
    assert len(paths) > 10
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_changelog_begins_with_the_version(wheel: Path) -> None:
    newest = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert metadata_of(wheel)["Version"] in newest[:2]


# --- a clone without symbolic links, as git makes it with core.symlinks=false


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone of the tree's package, made by git itself."""
    source, clone = copy_of(SHIPPED, tmp_path / "source"), tmp_path / "clone"
    names = ["-c", "user.name=kclient", "-c", "user.email=kclient@localhost"]
    for command in (["init", "--quiet"], ["add", "."], [*names, "commit", "--quiet", "--message", "all"]):
        subprocess.run(["git", *command], cwd=source, check=True)
    subprocess.run(["git", "clone", "--quiet", "-c", "core.symlinks=false", source, clone], check=True)
    assert (clone / "kclient" / "generated").read_text() == "../generated"
    return clone


def test_a_wheel_of_a_clone_without_links_holds_the_codecs(tree: Path, clone: Path, tmp_path: Path) -> None:
    wheel = build("wheel", clone, tmp_path, KCLIENT_PURE="1")
    assert files_of(wheel) == modules(tree)
    assert use(wheel)[1] == f"{wheel}/kclient/generated/__init__.py"


@pytest.mark.parametrize("kind", ["editable", "sdist"])
def test_what_needs_the_link_says_how_to_get_it(kind: str, clone: Path, tmp_path: Path) -> None:
    call = f"from setuptools import build_meta; build_meta.build_{kind}({str(tmp_path)!r})"
    run = subprocess.run([sys.executable, "-c", call], cwd=clone, capture_output=True, text=True, check=False)
    assert run.returncode != 0
    assert "git config core.symlinks true" in run.stderr


# --- the native decoder, which is optional


def files_of(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


@needs_compiler
def test_one_wheel_of_a_platform_serves_python_3_11_and_all_later_ones(
    native_tree: Path, tmp_path: Path
) -> None:
    wheel = build("wheel", native_tree, tmp_path)
    assert "-cp311-abi3-" in wheel.name
    assert "kclient/records/_native.abi3.so" in files_of(wheel)
    assert "kclient/records/_native.pyi" in files_of(wheel)


def test_without_a_compiler_the_package_is_built_without_the_native_decoder(
    native_tree: Path, tmp_path: Path
) -> None:
    files = files_of(build("wheel", native_tree, tmp_path, CC="no-such-compiler"))
    assert modules(native_tree) <= files
    assert not [name for name in files if name.endswith(".so")]


def test_a_pure_wheel_can_be_built_for_every_platform(native_tree: Path, tmp_path: Path) -> None:
    assert build("wheel", native_tree, tmp_path, KCLIENT_PURE="1").name.endswith("-py3-none-any.whl")


def test_the_source_distribution_holds_the_c_files(native_tree: Path, tmp_path: Path) -> None:
    archive = build("sdist", native_tree, tmp_path)
    listed = subprocess.run(["tar", "-tzf", archive], capture_output=True, text=True, check=True).stdout
    sources = {path.name for path in (native_tree / "native").iterdir()}
    assert sources <= {line.rsplit("/", 1)[-1] for line in listed.splitlines() if "/native/" in line}
