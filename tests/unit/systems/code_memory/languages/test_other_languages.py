"""Programs in languages that no query reads: their definitions, by the form of their lines."""

import pytest

from rag_assets.systems.code_memory.reading import read_code
from rag_assets.systems.code_memory.sources.repositories.names import find_repository_type
from rag_assets.systems.code_memory.symbols.model import USES

PROGRAMS: dict[str, tuple[str, list[str]]] = {
    "orders.fs": (
        """module Shop.Orders

type Order = { Id: int }

let add a b =
    a + b

let rec total items =
    match items with
    | [] -> 0
""",
        ["Shop.Orders", "Order", "add", "total"],
    ),
    "Invoice.vb": (
        """Public Class Invoice
    Inherits Base
    Public Sub Pay(amount As Integer)
    End Sub
    Private Function Total() As Decimal
    End Function
End Class
""",
        ["Invoice", "Pay", "Total"],
    ),
    "Token.sol": (
        """contract Token is ERC20 {
  event Paid(address to);
  modifier onlyOwner() { _; }
  function transfer(address to) public returns (bool) {
  }
}
""",
        ["Token", "Paid", "onlyOwner", "transfer"],
    ),
    "Cart.m": (
        """@interface Cart : NSObject
- (void)addItem:(Item *)item;
+ (instancetype)shared;
@end
""",
        ["Cart", "addItem", "shared"],
    ),
    "person.nim": (
        """type
  Person = object
proc greet*(p: Person): string =
  discard
""",
        ["greet"],
    ),
    "shapes.f90": (
        """module shapes
contains
  subroutine area(r)
  end subroutine area
  pure function square(x)
  end function
end module shapes
""",
        ["shapes", "area", "square"],
    ),
    "init.el": (
        """(defun my-open (x)
  x)
(defvar my-path nil)
""",
        ["my-open", "my-path"],
    ),
    "kernel.cu": (
        """__global__ void add(float *a) {
}
int main(void) {
}
""",
        ["add", "main"],
    ),
    "player.gd": (
        """class_name Player
func _ready() -> void:
	pass
""",
        ["Player", "_ready"],
    ),
    "Main.pas": (
        """unit Main;
procedure TForm1.Click(Sender: TObject);
begin
end;
""",
        ["TForm1.Click"],
    ),
    "animal.coffee": (
        """square = (x) -> x * x
class Animal extends Base
  move: (m) ->
    1
""",
        ["square", "Animal", "move"],
    ),
    "AccountService.cls": (
        """public with sharing class AccountService {
  public static void merge(Id a) {
  }
}
""",
        ["AccountService", "merge"],
    ),
    "counter.sv": (
        """module counter #(parameter N = 8) (input clk);
endmodule
""",
        ["counter"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("path", PROGRAMS)
def test_definitions_and_names_are_read(path: str) -> None:
    text, names = PROGRAMS[path]
    media_type = find_repository_type(f"src/{path}")
    assert media_type == "text/x-other"
    reading = read_code(text, media_type)
    symbols = [fact.symbol for fact in reading.facts if fact.kind == "declares"]
    assert [name for name in names if name in symbols] == names
    index = next(fact.values["names"] for fact in reading.facts if fact.kind == USES)
    assert all(name.rpartition(".")[2] in index for name in names)


def test_sentences_in_comments_define_nothing() -> None:
    text = "(*\n class of all orders that are paid\n type is important\n module of the shop\n*)\n"
    reading = read_code(text, "text/x-other")
    assert not [unit.symbol for unit in reading.units if unit.symbol]


@pytest.mark.parametrize(
    ("path", "media_type"),
    [
        ("src/Shop/Shop.csproj", "text/x-xml"), ("Dockerfile.dev", "text/plain"),
        ("ci/Jenkinsfile", "text/x-groovy"), ("Vagrantfile", "text/x-ruby"),
        ("config.ru", "text/x-ruby"), ("lib/page.html.heex", "text/x-template"),
        (".vscode/settings.jsonc", "text/x-json"), ("a/BUILD.bazel", "text/x-other"),
        ("picture.xyz", None), ("a/notes", None),
    ],
)  # fmt: skip
def test_files_are_known_by_name_or_suffix(path: str, media_type: str | None) -> None:
    assert find_repository_type(path) == media_type
