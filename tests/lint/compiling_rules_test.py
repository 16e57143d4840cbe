import json

from planted_tree import PlantedTree, quietly


class CompilingRule(PlantedTree):
    """A tree with one room and its compile commands."""

    def setUp(self) -> None:
        super().setUp()
        self.plant("thinwire/base/a.cpp", "int a() { return 1; }\n")
        self.build = self.root / "build"
        command = f"g++ -std=c++20 -I{self.root} -o a.o -c {self.root}/thinwire/base/a.cpp"
        entry = {"directory": str(self.build), "file": f"{self.root}/thinwire/base/a.cpp", "command": command}
        self.plant("build/compile_commands.json", json.dumps([entry]))

    def status(self) -> int:
        return quietly(lambda: self.check.run(self.root, self.build))


class Headers(CompilingRule):
    check_name = "check_headers"

    def test_a_header_that_stands_alone_passes(self) -> None:
        self.plant("thinwire/base/a.hpp", "#pragma once\n#include <string>\nstd::string text();\n")
        self.assertEqual(self.status(), 0)

    def test_a_header_that_leans_on_its_includer_fails(self) -> None:
        self.plant("thinwire/base/a.hpp", "#pragma once\nstd::string text();\n")
        self.assertNotEqual(self.status(), 0)

    def test_a_header_without_guard_fails(self) -> None:
        self.plant("thinwire/base/a.hpp", "struct A {};\n")
        self.assertNotEqual(self.status(), 0)

    def test_a_change_in_what_it_includes_is_noticed(self) -> None:
        self.plant("thinwire/base/a.hpp", '#pragma once\n#include "thinwire/base/b.hpp"\nB b();\n')
        self.plant("thinwire/base/b.hpp", "#pragma once\nstruct B {};\n")
        self.assertEqual(self.status(), 0)
        self.plant("thinwire/base/b.hpp", "#pragma once\nstruct C {};\n")
        self.assertNotEqual(self.status(), 0)


class Tidy(CompilingRule):
    check_name = "check_tidy"

    def setUp(self) -> None:
        super().setUp()
        if self.check.clang_tidy() is None:
            self.skipTest("no clang-tidy")
        self.plant(".clang-tidy", "Checks: '-*,modernize-use-nullptr'\n")

    def test_clean_source_passes(self) -> None:
        self.assertEqual(self.status(), 0)

    def test_a_listed_mistake_fails(self) -> None:
        self.plant("thinwire/base/a.cpp", "int* a() { return 0; }\n")
        self.assertNotEqual(self.status(), 0)


class Format(PlantedTree):
    check_name = "check_format"

    def status(self) -> int:
        return quietly(lambda: self.check.run(self.root, fix=False))

    def test_only_formatted_source_passes(self) -> None:
        if self.check.clang_format(self.root) is None:
            self.skipTest("no clang-format of the release that decides")
        self.plant(".clang-format", "BasedOnStyle: Google\n")
        self.plant("a.cpp", "int a;\n")
        self.assertEqual(self.status(), 0)
        self.plant("a.cpp", "int   a ;\n")
        self.assertNotEqual(self.status(), 0)
