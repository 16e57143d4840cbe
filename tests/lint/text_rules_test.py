from planted_tree import PlantedTree


class Ascii(PlantedTree):
    check_name = "check_ascii"

    def test_plain_text_passes(self) -> None:
        self.plant("a.cpp", "int a;\n")
        self.plant("Makefile", "a:\n\techo\n")
        self.plant("picture.png", "\u00fc\t")
        self.assert_clean()

    def test_each_violation_is_found(self) -> None:
        self.plant("a.cpp", "// na\u00efve\n")
        self.plant("b.md", "x\ty\n")
        self.plant("c.py", "x = 1 \n")
        self.plant("d.hpp", "int a;")
        self.assert_finds("a.cpp:1: not ASCII: U+00EF", "b.md:1: tab", "c.py:1: blanks", "d.hpp:1: no newline")


class Paths(PlantedTree):
    check_name = "check_paths"

    def test_ordinary_paths_pass(self) -> None:
        inside = "build/" + "work/x"
        self.plant("a.md", f"../shared/data, /tmp/x, /usr/include, http://www.apache.org, {inside}, /homework/\n")
        self.assert_clean()

    def test_machine_paths_and_registries_are_found(self) -> None:
        home, registry = "/" + "home/me/x", "pypi" + ".org"
        self.plant("a.md", f"ls {home}\n")
        self.plant("b/odd.name", f"x\nhttps://{registry}/simple\n")
        self.assert_finds("a.md:1", "b/odd.name:2")


class Cmake(PlantedTree):
    check_name = "check_cmake"

    def test_target_commands_pass(self) -> None:
        self.plant("CMakeLists.txt", "target_link_libraries(a b)\ntarget_include_directories(a x)\n# file(GLOB x)\n")
        self.assert_clean()

    def test_each_banned_command_is_found(self) -> None:
        banned = [
            "include(FetchContent)",
            "file(GLOB a *.cpp)",
            "include_directories(x)",
            "link_libraries(x)",
            "add_definitions(-Dx)",
            "add_compile_options(-O3)",
            "set(CMAKE_CXX_FLAGS -O3)",
            "file( glob_recurse a *)",
        ]
        for number, line in enumerate(banned):
            self.plant(f"f{number}/CMakeLists.txt", line + "\n")
        self.assert_finds(*(f"f{number}/CMakeLists.txt:1" for number in range(len(banned))))


class Sources(PlantedTree):
    check_name = "check_sources"

    def test_listed_sources_pass(self) -> None:
        self.plant(
            "a/CMakeLists.txt", 'thinwire_room(a SOURCES x.cpp sub/y.cpp)  # gone.cpp\nadd("${D}/generated/z.cpp")\n'
        )
        self.plant("a/x.cpp", "")
        self.plant("a/sub/y.cpp", "")
        self.assert_clean()

    def test_loops_over_names_are_followed(self) -> None:
        self.plant(
            "a/CMakeLists.txt",
            "foreach(test one two)\n  thinwire_test(${test}_test SOURCES ${test}_test.cpp)\nendforeach()\n",
        )
        self.plant("a/one_test.cpp", "")
        self.plant("a/three_test.cpp", "")
        self.assert_finds(
            "a/CMakeLists.txt:2: a/two_test.cpp does not exist", "a/three_test.cpp:0: in no CMakeLists.txt"
        )

    def test_a_forgotten_and_a_missing_source_are_found(self) -> None:
        self.plant("a/CMakeLists.txt", "thinwire_room(a SOURCES\n  gone.cpp)\n")
        self.plant("a/forgotten.cpp", "")
        self.assert_finds("a/CMakeLists.txt:2: a/gone.cpp does not exist", "a/forgotten.cpp:0: in no CMakeLists.txt")


class Docs(PlantedTree):
    check_name = "check_docs"

    def setUp(self) -> None:
        super().setUp()
        self.plant("Makefile", "VARIABLE := 1\ntest: build\nbuild clean:\n")
        self.plant("thinwire/cli/main.cpp", 'app.add_subcommand("run", "starts ranks");\n')

    def test_what_exists_passes(self) -> None:
        self.plant("docs/b.md", "# Some heading: one\n")
        self.plant(
            "a.md",
            "[b](docs/b.md#some-heading-one) [web](https://x.y) `make test` `[i](j)`\n"
            "```\nmake clean\n$ build/bin/thinwire run -n 2\nimport thinwire as tw\n```\nwe make sure\n",
        )
        self.assert_clean()

    def test_each_violation_is_found(self) -> None:
        self.plant("a.md", "[b](nowhere.md)\n[c](#no-heading)\n`make cake`\n`thinwire fly`\n")
        self.assert_finds("a.md:1: link to nowhere.md", "a.md:2: link to #no-heading", "make cake", "thinwire fly")


class Scripts(PlantedTree):
    check_name = "check_scripts"

    def test_good_scripts_pass(self) -> None:
        self.plant("a.sh", "if true; then echo; fi\n")
        self.plant("b.py", "import os\n\nprint(os.sep)\n")
        self.assert_clean()

    def test_a_broken_shell_script_is_found(self) -> None:
        self.plant(".ci/run", "#!/usr/bin/env bash\nif true; then\n")
        self.assert_finds(".ci/run:0")

    def test_broken_python_is_found(self) -> None:
        self.plant("b.py", "def f(:\n")
        self.assert_finds("b.py:1")

    def test_an_unused_name_is_found(self) -> None:
        self.plant("b.py", "import os\n")
        if not self.check.ruff():
            self.skipTest("no ruff beside this Python; make setup installs it")
        self.assert_finds("F401")
