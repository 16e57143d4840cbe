from planted_tree import PlantedTree


def body(lines: int) -> str:
    return "".join(f"  work({i});\n" for i in range(lines))


class Sizes(PlantedTree):
    check_name = "check_sizes"

    def names_and_lengths(self, source: str) -> list[tuple[str, int]]:
        return [(f.name, f.lines) for f in self.check.functions_of("a.cpp", source)]

    def test_a_long_function_is_named(self) -> None:
        self.plant("a.cpp", f"void fine() {{\n{body(10)}}}\n\nint Deep::long_one(int a) const {{\n{body(60)}}}\n")
        self.assert_finds("a.cpp:14: Deep::long_one has 62 lines", "1 of 2 functions are over 30 lines")

    def test_a_long_python_function_is_named(self) -> None:
        self.plant("a.py", "def long_one():\n" + "    work()\n" * 61)
        self.assert_finds("a.py:1: long_one has 62 lines", "1 of 1 functions")

    def test_one_function_in_ten_may_be_longer_than_thirty_lines(self) -> None:
        short = "".join(f"void f{i}() {{\n{body(2)}}}\n" for i in range(9))
        self.plant("a.cpp", short + f"void g() {{\n{body(40)}}}\n")
        self.assert_clean()
        self.plant("b.cpp", f"void h() {{\n{body(40)}}}\n")
        self.assert_finds("2 of 11 functions are over 30 lines")

    def test_a_long_file_is_named(self) -> None:
        for i in range(10):
            self.plant(f"short{i}.cpp", "int a;\n")
        self.plant("long.cpp", "int a;\n" * 601)
        self.assert_finds("long.cpp:0: 601 lines")

    def test_the_median_file_is_bounded(self) -> None:
        self.plant("a.cpp", "int a;\n" * 121)
        self.assert_finds("median file has 121 lines")

    def test_braces_in_comments_and_literals_do_not_count(self) -> None:
        source = 'void f() {\n  // }\n  g("}", \'}\', R"x( } )x");  /* }\n } */\n}\nvoid h() {\n}\n'
        self.assertEqual(self.names_and_lengths(source), [("f", 5), ("h", 2)])

    def test_types_and_tables_are_not_functions(self) -> None:
        source = (
            "namespace a {\nstruct S {\n  int x = 3;\n  int y() const { return x; }\n};\n"
            "constexpr int kTable[] = {\n1,\n2};\nenum class E { kA };\n}\n"
        )
        self.assertEqual(self.names_and_lengths(source), [("y", 1)])

    def test_constructors_with_braces_in_their_initializers(self) -> None:
        source = "A::A(int x)\n    : a_{x}, b_(f({1, 2})) {\n  g();\n}\nvoid h(S s = {}) {\n}\n"
        self.assertEqual(self.names_and_lengths(source), [("A::A", 4), ("h", 2)])

    def test_tests_are_functions(self) -> None:
        self.assertEqual(self.names_and_lengths("TEST(A, B) {\n  for (;;) {\n  }\n}\n"), [("TEST", 4)])

    def test_macros_do_not_upset_the_count(self) -> None:
        self.assertEqual(self.names_and_lengths("#define OPEN \\\n  {\nvoid f() {\n}\n"), [("f", 2)])
