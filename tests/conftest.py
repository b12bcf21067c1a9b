"""Lets Meson run pytest through Meson's protocol for GoogleTest, so that Meson's report has every case."""


def pytest_addoption(parser):
    parser.addoption("--gtest_output", metavar="xml:FILE", help="write a JUnit report to FILE")


def pytest_configure(config):
    if output := config.getoption("--gtest_output"):
        config.option.xmlpath = output.removeprefix("xml:")
