# What can be switched, and the one interface target that carries flags.
# Features are AUTO | ON | OFF: ON fails when the feature is missing, AUTO reports it and goes on.
set(THINWIRE_TORCH AUTO CACHE STRING "Build the training half (needs PyTorch): AUTO, ON or OFF")
set_property(CACHE THINWIRE_TORCH PROPERTY STRINGS AUTO ON OFF)
set(THINWIRE_PYTHON "" CACHE FILEPATH "Python interpreter that has torch; empty: .venv of this tree, else python3")
set(THINWIRE_SANITIZE "" CACHE STRING "Sanitizers, as for -fsanitize= (address,undefined or thread); empty: none")
option(THINWIRE_COVERAGE "Instrument for gcov" OFF)
option(THINWIRE_TESTS "Build the tests" ON)
option(THINWIRE_WERROR "Warnings are errors" ON)

find_package(Threads REQUIRED)

add_library(thinwire_flags INTERFACE)
target_compile_features(thinwire_flags INTERFACE cxx_std_20)
# -ffp-contract=off: ranks with different processors must compute the same bits (docs/algorithms.md).
target_compile_options(thinwire_flags INTERFACE -ffp-contract=off)
target_link_libraries(thinwire_flags INTERFACE Threads::Threads)
target_include_directories(thinwire_flags INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                                    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/generated>
                                                    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

# Warnings are for our own sources, not for those who use the installed package.
add_library(thinwire_warnings INTERFACE)
target_compile_options(thinwire_warnings INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
                                                   $<$<BOOL:${THINWIRE_WERROR}>:-Werror>
                                                   # GCC 12 reports std::string + at -O3 (its bug 105651).
                                                   $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
if(THINWIRE_SANITIZE)
  target_compile_options(thinwire_flags INTERFACE -fsanitize=${THINWIRE_SANITIZE} -fno-omit-frame-pointer
                                                  -fno-sanitize-recover=all)
  target_link_options(thinwire_flags INTERFACE -fsanitize=${THINWIRE_SANITIZE})
endif()
if(THINWIRE_COVERAGE)
  target_compile_options(thinwire_flags INTERFACE --coverage)
  target_link_options(thinwire_flags INTERFACE --coverage)
endif()
