"""Where callbacks may go, and where nobody is to send them."""

from __future__ import annotations

import pytest

from models.errors import CallbackUrlRefused
from pipeline.settings import ApiSettings
from workers.callbacks.targets import (
    IpAddress,
    Target,
    allowed_addresses,
    callback_target,
    may_be_reached,
)

STRICT = ApiSettings()
INNER = ApiSettings.model_validate({"callback_networks": "10.1.0.0/16, fd00::/8", "callback_http": True})


def address(text: str) -> IpAddress:
    import ipaddress

    return ipaddress.ip_address(text)


@pytest.mark.parametrize(
    "text", ["93.184.216.34", "1.1.1.1", "2606:4700::1111", "::ffff:93.184.216.34", "64:ff9b::5db8:d822"]
)
def test_public_addresses_may_be_reached(text: str) -> None:
    assert may_be_reached(address(text), STRICT)


@pytest.mark.parametrize(
    "text",
    [
        *("127.0.0.1", "127.8.8.8", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1"),
        *("169.254.169.254", "192.0.0.8", "192.0.0.192", "192.0.2.1", "198.18.0.1", "192.88.99.1"),
        *("224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255"),
        *("::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:0:7f00:1"),
        *("64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::5db8:d822", "2002:7f00:1::", "2001:0:1::1"),
        *("fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "ff0e::1"),
        *("100::1", "2001:db8::1", "3fff::1", "4000::1"),
    ],
)
def test_all_others_may_not(text: str) -> None:
    assert not may_be_reached(address(text), STRICT)


@pytest.mark.parametrize(
    ("text", "may"),
    [
        ("10.1.2.3", True),
        ("::ffff:10.1.2.3", True),
        ("64:ff9b::a01:203", True),
        ("10.2.0.1", False),
        ("fd00::1", True),
        ("fc00::1", False),
        ("127.0.0.1", False),
    ],
)
def test_a_network_of_the_settings_may_be_reached_and_no_other(text: str, may: bool) -> None:
    assert may_be_reached(address(text), INNER) is may


def test_one_address_inside_refuses_the_name() -> None:
    assert allowed_addresses(["1.1.1.1", "1.1.1.1", "2606:4700::1111"], STRICT) == (
        address("1.1.1.1"),
        address("2606:4700::1111"),
    )
    refusals = set()
    for found in (["1.1.1.1", "10.0.0.1"], ["::1"], []):
        with pytest.raises(CallbackUrlRefused) as refusal:
            allowed_addresses(found, STRICT)
        refusals.add(str(refusal.value))
    assert len(refusals) == 1, "which names there are inside can be told from the answers"


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("https://a.example", Target(scheme="https", host="a.example", port=443, path="/")),
        (
            "HTTPS://A.Example.:8443/x/?y=1&z",
            Target(scheme="https", host="a.example", port=8443, path="/x/?y=1&z"),
        ),
        ("https://[2606:4700::1111]/x", Target(scheme="https", host="2606:4700::1111", port=443, path="/x")),
    ],
)
def test_an_address_is_taken_apart(url: str, target: Target) -> None:
    assert callback_target(url, STRICT) == target


@pytest.mark.parametrize(
    ("target", "header"),
    [
        (Target(scheme="https", host="a.example", port=443, path="/"), "a.example"),
        (Target(scheme="http", host="a.example", port=443, path="/"), "a.example:443"),
        (Target(scheme="https", host="2606:4700::1", port=8443, path="/"), "[2606:4700::1]:8443"),
    ],
)
def test_the_host_header_names_the_port_where_it_is_not_the_usual_one(target: Target, header: str) -> None:
    assert target.host_header == header


@pytest.mark.parametrize(
    "url",
    [
        *(
            "",
            "a.example",
            "https://",
            "https://.",
            "https:///x",
            "https://a.example:99999",
            "https://a.example:0",
        ),
        *(
            "https://a.example/\n",
            "https://a exam.ple",
            "https://a.example\\@10.0.0.1/",
            "https://[::1",
            "//a.example",
        ),
        *("ftp://a.example", "file:///etc/passwd", "javascript:alert(1)", "http://a.example"),
        *(
            "https://ada@a.example",
            "https://ada:word@a.example",
            "https://a.example/#x",
            "https://bücher.example",
        ),
        *(
            "https://127.0.0.1/",
            "https://[::1]:8443/",
            "https://169.254.169.254/latest",
            "https://[::ffff:10.0.0.1]/",
        ),
        "https://a.example/" + "x" * 2_000,
    ],
)
def test_what_can_never_be_gone_to_is_refused_at_once(url: str) -> None:
    with pytest.raises(CallbackUrlRefused):
        callback_target(url, STRICT)


def test_http_and_inner_numbers_are_taken_where_the_settings_allow_them() -> None:
    assert callback_target("http://10.1.0.9:8080/x", INNER).host == "10.1.0.9"
    with pytest.raises(CallbackUrlRefused, match=r"10\.2\.0\.9 is no public address"):
        callback_target("http://10.2.0.9/", INNER)
