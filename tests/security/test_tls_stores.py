"""Trust stores and key stores: PEM files and text, PKCS#12, and a clear response to everything else."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from kclient.errors import ConfigError
from kclient.security import Secret, file
from kclient.security.stores import CertificateStore
from kclient.security.tls import TLS_1_3, Ciphers, Tls, TlsOptions, openssl_name
from tests.security.certificates import Authority, Issued

AUTHORITY = Authority()
CLIENT = AUTHORITY.issue("localhost", subject="client")


def trust(location: Path, kind: str = "JKS", password: str | None = None) -> TlsOptions:
    secret = None if password is None else Secret(password)
    return TlsOptions(trusted=CertificateStore("ssl_truststore", str(location), kind, secret))


def identity(
    location: Path, kind: str = "JKS", password: str | None = None, key_password: str | None = None
) -> TlsOptions:
    return TlsOptions(
        identity=CertificateStore(
            "ssl_keystore", str(location), kind, Secret(password) if password else None
        ),
        key_password=Secret(key_password) if key_password else None,
    )


def problem(options: TlsOptions) -> str:
    with pytest.raises(ConfigError) as caught:
        Tls(options)
    return caught.value.text


def names(context: ssl.SSLContext) -> list[object]:
    return [dict(part[0] for part in entry["subject"]) for entry in context.get_ca_certs()]  # type: ignore[misc]


@pytest.mark.spec("B.1.2", "U-17")
def test_pem_files_pem_text_and_pkcs12_give_the_same_trust(tmp_path: Path) -> None:
    pem = AUTHORITY.write_pem(tmp_path / "ca.pem")
    p12 = AUTHORITY.write_pkcs12(tmp_path / "ca.p12", "changeit")
    for options in [
        trust(pem),
        trust(pem, "PEM"),
        trust(p12, "JKS", "changeit"),
        trust(p12, "PKCS12", "changeit"),
        TlsOptions(trusted=Secret(AUTHORITY.pem)),
    ]:
        assert names(Tls(options).refresh()) == [{"commonName": "Test Authority"}]


@pytest.mark.spec("B.1.2", "U-17")
def test_a_client_certificate_comes_from_pem_or_pkcs12_its_key_encrypted_or_not(tmp_path: Path) -> None:
    for options in [
        identity(CLIENT.write_pem(tmp_path / "plain.pem")),
        identity(CLIENT.write_pem(tmp_path / "sealed.pem", "k3y"), key_password="k3y"),
        identity(CLIENT.write_pkcs12(tmp_path / "client.p12", "changeit"), "PKCS12", "changeit"),
        TlsOptions(key=Secret(CLIENT.key_pem()), chain=Secret(CLIENT.chain_pem)),
        TlsOptions(
            key=Secret(CLIENT.key_pem("k3y")), chain=Secret(CLIENT.chain_pem), key_password=Secret("k3y")
        ),
    ]:
        assert options.shows_certificate
        Tls(options)


@pytest.mark.spec("B.1.2")
def test_no_key_is_left_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    Tls(TlsOptions(key=Secret(CLIENT.key_pem()), chain=Secret(CLIENT.chain_pem)))
    monkeypatch.delattr("os.memfd_create", raising=False)
    Tls(TlsOptions(key=Secret(CLIENT.key_pem()), chain=Secret(CLIENT.chain_pem)))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spec("U-17")
@pytest.mark.parametrize("content", [None, b"\xfe\xed\xfe\xed\x00\x00\x00\x02", b"whatever"])
def test_a_jks_file_is_answered_with_the_line_that_converts_it(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "my trust.jks"
    if content is not None:
        path.write_bytes(content)
    assert (
        f"keytool -importkeystore -srckeystore '{path}' -srcstoretype JKS "
        f"-destkeystore '{tmp_path / 'my trust.p12'}' -deststoretype PKCS12"
    ) in problem(trust(path))


@pytest.mark.spec("U-17")
@pytest.mark.skipif(shutil.which("keytool") is None, reason="keytool comes with Java")
def test_the_line_for_jks_makes_a_store_that_works(tmp_path: Path) -> None:
    jks, pem = tmp_path / "trust.jks", AUTHORITY.write_pem(tmp_path / "ca.pem")
    given = ["-storepass", "changeit", "-noprompt"]
    make = [
        "keytool",
        "-importcert",
        "-alias",
        "ca",
        "-file",
        pem,
        "-keystore",
        jks,
        "-storetype",
        "JKS",
        *given,
    ]
    subprocess.run(make, check=True, capture_output=True, timeout=60)
    line = problem(trust(jks)).split("new file: ")[1]
    passwords = ["-srcstorepass", "changeit", "-deststorepass", "changeit"]
    subprocess.run([*line.split(), *passwords], check=True, capture_output=True, timeout=60)
    assert names(Tls(trust(tmp_path / "trust.p12", "JKS", "changeit")).refresh()) == [
        {"commonName": "Test Authority"}
    ]


@pytest.mark.spec("U-17")
def test_a_pkcs12_store_without_cryptography_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    p12 = AUTHORITY.write_pkcs12(tmp_path / "ca.p12", "changeit")
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.serialization.pkcs12", None)
    assert problem(trust(p12, "PKCS12", "changeit")).endswith("pip install 'kclient-kafka[pkcs12]'")


@pytest.mark.spec("B.1.2", "I-39")
def test_what_is_wrong_with_a_store_is_reported_without_its_password(tmp_path: Path) -> None:
    other = Authority("Another").issue("x", "y")
    p12 = CLIENT.write_pkcs12(tmp_path / "client.p12", "changeit")
    mixed = tmp_path / "mixed.pem"
    mixed.write_text(other.key_pem() + CLIENT.chain_pem)
    found = {
        "cannot be read: No such file": trust(tmp_path / "none.pem"),
        "is not PEM or PKCS#12": trust(_written(tmp_path / "odd.pem", "odd")),
        "is not PEM": trust(p12, "PEM"),
        "is not PKCS12": trust(AUTHORITY.write_pem(tmp_path / "ca.pem"), "PKCS12", "hunter2"),
        "ssl_truststore_password is wrong": trust(p12, "JKS", "hunter2"),
        "no PEM certificate": trust(_written(tmp_path / "key.pem", CLIENT.key_pem())),
        "no PEM private key": identity(tmp_path / "ca.pem"),
        "is encrypted. Give its ssl_key_password": identity(CLIENT.write_pem(tmp_path / "sealed.pem", "k3y")),
        "the password is wrong": identity(tmp_path / "sealed.pem", key_password="hunter2"),
        "key values mismatch": identity(mixed),
        "no private key": identity(
            AUTHORITY.write_pkcs12(tmp_path / "ca.p12", "changeit"), password="changeit"
        ),
    }
    for expected, options in found.items():
        text = problem(options)
        assert expected in text
        assert "hunter2" not in text


def _written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.mark.spec("B.1.2")
def test_files_that_change_give_a_new_context_and_broken_ones_leave_the_last(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = AUTHORITY.write_pem(tmp_path / "ca.pem")
    tls = Tls(trust(path))
    first = tls.refresh()
    assert tls.refresh() is first
    Authority("Successor").write_pem(path)
    second = tls.refresh()
    assert names(second) == [{"commonName": "Successor"}]
    path.write_text("half a fi")
    assert tls.refresh() is second
    assert "the last ones are kept" in caplog.text


@pytest.mark.spec("B.1.2")
def test_a_key_that_a_provider_reads_is_read_again(tmp_path: Path) -> None:
    key, chain = tmp_path / "tls.key", tmp_path / "tls.crt"

    def write(issued: Issued) -> None:
        key.write_text(issued.key_pem())
        chain.write_text(issued.chain_pem)

    write(CLIENT)
    tls = Tls(TlsOptions(key=Secret(file(key)), chain=Secret(file(chain))))
    first = tls.refresh()
    write(AUTHORITY.issue("localhost", subject="renewed"))
    assert tls.refresh() is not first


@pytest.mark.spec("B.1.2")
def test_a_context_verifies_names_and_certificates_and_allows_no_old_tls() -> None:
    context = Tls(TlsOptions()).refresh()
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert (context.minimum_version, context.maximum_version) == (
        ssl.TLSVersion.TLSv1_2,
        ssl.TLSVersion.TLSv1_3,
    )
    assert context.options & ssl.OP_NO_RENEGOTIATION


@pytest.mark.spec("B.1.2")
@pytest.mark.parametrize(
    ("standard", "openssl"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"),
        ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
        ("TLS_DHE_RSA_WITH_AES_256_GCM_SHA384", "DHE-RSA-AES256-GCM-SHA384"),
        ("TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256", "ECDHE-RSA-AES128-SHA256"),
        ("TLS_RSA_WITH_AES_128_GCM_SHA256", "AES128-GCM-SHA256"),
        ("ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
    ],
)
def test_suites_have_the_names_of_the_standard(standard: str, openssl: str) -> None:
    assert openssl_name(standard) == openssl
    context = Tls(TlsOptions(ciphers=Ciphers((standard,)))).refresh()
    old = [suite["name"] for suite in context.get_ciphers() if suite["name"] not in TLS_1_3]
    assert old == [openssl]
    assert context.maximum_version is ssl.TLSVersion.TLSv1_2  # no suite of TLS 1.3 was named


@pytest.mark.spec("B.1.2")
def test_suites_that_cannot_be_kept_are_refused() -> None:
    assert Tls(TlsOptions(ciphers=Ciphers(TLS_1_3))).refresh().minimum_version is ssl.TLSVersion.TLSv1_3
    assert "Name all of" in problem(TlsOptions(ciphers=Ciphers(TLS_1_3[:1])))
    assert "NO-SUCH-SUITE is not a suite" in problem(TlsOptions(ciphers=Ciphers(("NO-SUCH-SUITE",))))
    only_new = TlsOptions(ciphers=Ciphers(("AES128-SHA",)), lowest=ssl.TLSVersion.TLSv1_3)
    assert "leave no version" in problem(only_new)
