"""PLAIN tokens and JAAS entries, read strictly."""

from __future__ import annotations

import pytest

from kclient.security import Secret, plain_token, plain_user
from kclient.security.jaas import parse_jaas

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.spec("B.4.12")
def test_a_plain_token_is_what_its_rfc_says_and_reads_back() -> None:
    token = plain_token("alice", "hünter2")
    assert token == b"\x00alice\x00h\xc3\xbcnter2"
    user = plain_user(token)
    assert (user.authorization_id, user.username, user.password) == ("", "alice", Secret("hünter2"))
    assert "nter2" not in repr(user)


@pytest.mark.parametrize(("user", "password"), [("", "p"), ("a\x00b", "p"), ("a", "p\x00q")])
def test_a_plain_token_that_could_be_read_otherwise_is_not_made(user: str, password: str) -> None:
    with pytest.raises(ValueError, match="NUL"):
        plain_token(user, password)


@pytest.mark.parametrize(
    "token",
    [b"", b"a\x00b", b"\x00a\x00b\x00c", b"\x00\x00b", b"\x00a\x00", b"\x00\xff\x00b", b"x\x00a\x00b"],
)
def test_a_server_refuses_what_is_no_plain_token(token: bytes) -> None:
    with pytest.raises(ValueError, match="PLAIN token"):
        plain_user(token)


@pytest.mark.spec("B.1.3")
@pytest.mark.parametrize(
    ("text", "options"),
    [
        (
            f'{PLAIN} required username="alice" password="se;cret";',
            {"username": "alice", "password": "se;cret"},
        ),
        (f"{PLAIN}  REQUIRED\n  username='alice'\n  password='it''s' ;", None),
        (
            f'{PLAIN} sufficient username=alice password="a\\"b\\\\c" ; ',
            {"username": "alice", "password": 'a"b\\c'},
        ),
        (
            f'{PLAIN} required // who\n username="a" /* secret */ password="\\101\\n";',
            {"username": "a", "password": "A\n"},
        ),
        (f"{PLAIN} required;", {}),
    ],
)
def test_jaas_as_java_reads_it(text: str, options: dict[str, str] | None) -> None:
    if options is None:
        with pytest.raises(ValueError, match="option password is something else"):
            parse_jaas(text)
        return
    entry = parse_jaas(text)
    assert (entry.module, entry.options) == (PLAIN, options)


@pytest.mark.spec("B.1.3", "I-39")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "hunter2",
        f'{PLAIN} required password="hunter2"',
        f'{PLAIN} password="hunter2";',
        f'{PLAIN} required password="hunter2" password="hunter2";',
        f'{PLAIN} required password "hunter2";',
        f'{PLAIN} required password="hunter2;',
        f"{PLAIN} required password=hunter2 hunter2;",
        f'{PLAIN} required password="hunter2"; {PLAIN} required password="hunter2";',
        f'{PLAIN} required pass§word="hunter2";',
        f'{PLAIN} required hunter2=password "x";',
        f"{PLAIN} required hunter2=a hunter2=b;",
    ],
)
def test_jaas_that_is_not_one_entry_is_refused_without_showing_it(text: str) -> None:
    with pytest.raises(ValueError, match=r"must|cannot|names option") as caught:
        parse_jaas(text)
    assert "hunter2" not in str(caught.value)


@pytest.mark.spec("I-39")
def test_the_repr_of_an_entry_shows_the_names_of_its_options_alone() -> None:
    entry = parse_jaas(f'{PLAIN} required username="alice" password="hunter2";')
    assert repr(entry) == f"JaasEntry(module='{PLAIN}', options=<username, password>)"
    assert "hunter2" not in repr(parse_jaas(f'{PLAIN} required passwordhunter2="x";'))
