from planted_tree import PlantedTree


class Layering(PlantedTree):
    check_name = "check_layering"

    def test_allowed_includes_pass(self) -> None:
        self.plant("thinwire/train/ddp/a.hpp", '#include "thinwire/comm/group.hpp"\n#include <ATen/core/Tensor.h>\n')
        self.plant(
            "thinwire/comm/c10d_group.cpp", "#include <torch/csrc/distributed/c10d/Store.hpp>\n#include <gloo/a.h>\n"
        )
        self.plant("thinwire/cli/main.cpp", '#include "thinwire/comm/group.hpp"\n')
        self.plant("tests/cli/a_test.cpp", '#include "thinwire/cli/run.hpp"\n#include <torch/torch.h>\n')
        self.plant("thinwire/comm/CMakeLists.txt", "thinwire_room(comm SOURCES a.cpp USES base watch TORCH)\n")
        self.assert_clean()

    def test_a_room_uses_one_above_it(self) -> None:
        self.plant("thinwire/codec/a.cpp", '// text\n#include "thinwire/comm/group.hpp"\n')
        self.assert_finds("thinwire/codec/a.cpp:2: codec may not use comm")

    def test_train_takes_a_plan_and_does_not_make_one(self) -> None:
        for room in ("plan", "sim", "cost", "tune"):
            self.plant(f"thinwire/train/{room}.cpp", f'#include "thinwire/{room}/x.hpp"\n')
        self.assert_finds(*(f"train may not use {room}" for room in ("plan", "sim", "cost", "tune")))

    def test_nothing_uses_cli(self) -> None:
        self.plant("thinwire/tune/a.cpp", '#include "thinwire/cli/run.hpp"\n')
        self.plant("bench/step/a.cpp", '#include "thinwire/cli/run.hpp"\n')
        self.assert_finds("tune may not use cli", "nothing includes cli")

    def test_torch_in_a_room_without_torch(self) -> None:
        self.plant("thinwire/codec/a.cpp", "#include <c10/util/Half.h>\n")
        self.plant("thinwire/cli/a.cpp", "#include <torch/version.h>\n")
        self.assert_finds("thinwire/codec/a.cpp:1: Torch header", "thinwire/cli/a.cpp:1: Torch header")

    def test_the_big_torch_header_in_a_header(self) -> None:
        self.plant("thinwire/train/a.hpp", "#include <torch/torch.h>\n")
        self.assert_finds("torch/torch.h in a header")

    def test_confined_headers(self) -> None:
        self.plant("thinwire/comm/world.cpp", "#include <torch/csrc/distributed/c10d/Store.hpp>\n#include <gloo/a.h>\n")
        self.plant("thinwire/comm/a.cpp", "#include <mpi.h>\n")
        self.plant("thinwire/tune/a.cpp", "#include <nccl.h>\n")
        self.assert_finds("c10d headers only", "Gloo headers only", "MPI headers only", "NCCL headers only")

    def test_rooms_do_not_include_the_front_header(self) -> None:
        self.plant("thinwire/train/a.cpp", '#include "thinwire/thinwire.hpp"\n')
        self.assert_finds("is for users")

    def test_links_follow_the_same_table(self) -> None:
        self.plant(
            "thinwire/watch/CMakeLists.txt", "thinwire_room(watch\n  SOURCES a.cpp\n  USES base PRIVATE_USES codec)\n"
        )
        self.assert_finds("thinwire/watch/CMakeLists.txt:1: watch may not link codec")
