"""Every error class has a code of its own and a page under docs/errors that explains it."""

from __future__ import annotations

import inspect
import pickle
from pathlib import Path

import pytest

from kclient import errors

PAGES = Path(__file__).parents[2] / "docs" / "errors"
CLASSES = sorted(
    (cls for _, cls in inspect.getmembers(errors, inspect.isclass) if issubclass(cls, errors.KclientError)),
    key=lambda cls: cls.kc_code,
)


def attributes(cls: type) -> set[str]:
    """The attributes of an error, which hold more than its text."""
    own = {name for base in cls.__mro__[:-1] for name in vars(base).get("__annotations__", {})}
    return own - {"kc_code", "retriable"}


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.kc_code)
def test_a_page_explains_the_class_with_causes_a_way_out_and_its_attributes(
    cls: type[errors.KclientError],
) -> None:
    page = (PAGES / f"{cls.kc_code}.md").read_text()
    assert page.startswith(f"# {cls.kc_code} · {cls.__name__}\n")
    assert "## Likely causes\n\n- " in page
    assert "## What to do\n\n- " in page
    assert {name for name in attributes(cls) if f"`{name}`" not in page} == set()


def test_codes_are_unique_and_no_page_is_left_over() -> None:
    codes = [cls.kc_code for cls in CLASSES]
    assert len(codes) == len(set(codes))
    assert {page.stem for page in PAGES.glob("KC-*.md")} == set(codes)
    index = (PAGES / "README.md").read_text()
    assert [code for code in codes if f"]({code}.md)" not in index] == []


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.kc_code)
def test_an_error_ends_with_its_code_and_survives_pickling(cls: type[errors.KclientError]) -> None:
    error = cls("What failed. Why. What next.")
    assert str(error).endswith(f"[{cls.kc_code}] kclient explain {cls.kc_code}")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again)) == (cls, str(error))
