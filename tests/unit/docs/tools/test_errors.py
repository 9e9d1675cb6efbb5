import subprocess
import sys


def test_an_error_that_the_client_has_too_is_described_as_the_server_uses_it() -> None:
    # In an own process, because the order of the imports decided.
    program = (
        "import rag_assets.client.errors; from docs.tools.errors import find_classes;"
        "print(find_classes()['Forbidden'].__module__)"
    )
    command = [sys.executable, "-c", program]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stdout == "rag_assets.api.identity\n"
