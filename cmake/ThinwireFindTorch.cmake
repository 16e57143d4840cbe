# Finds the PyTorch that Python would import, without importing it, and wraps it in the imported target thinwire_torch.
# Not through TorchConfig.cmake: that one stops on a CUDA wheel when no CUDA toolkit is installed.
# Also installed, for thinwireConfig.cmake: nothing here depends on this tree.

# THINWIRE_PYTHON when set, else .venv of the outermost project, else python3.
function(thinwire_find_python out)
  if(THINWIRE_PYTHON)
    set(${out} "${THINWIRE_PYTHON}" PARENT_SCOPE)
  elseif(EXISTS "${CMAKE_SOURCE_DIR}/.venv/bin/python")
    set(${out} "${CMAKE_SOURCE_DIR}/.venv/bin/python" PARENT_SCOPE)
  else()
    find_program(THINWIRE_PYTHON3 python3)
    set(${out} "${THINWIRE_PYTHON3}" PARENT_SCOPE)
  endif()
endfunction()

# Folder and version of that Python's torch; both empty when it has none.
function(thinwire_ask_python_for_torch python root version)
  set(${root} "" PARENT_SCOPE)
  set(${version} "" PARENT_SCOPE)
  execute_process(COMMAND "${python}" "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/find_torch.py" OUTPUT_VARIABLE found
                  RESULT_VARIABLE status ERROR_QUIET)
  if(status EQUAL 0)
    string(REPLACE "\n" ";" found "${found}")
    list(GET found 0 found_root)
    list(GET found 1 found_version)
    set(${root} "${found_root}" PARENT_SCOPE)
    set(${version} "${found_version}" PARENT_SCOPE)
    # Another torch in the same place: configure again.
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${found_root}/version.py")
  endif()
endfunction()

function(thinwire_import_torch root)
  add_library(thinwire_torch INTERFACE IMPORTED GLOBAL)
  add_library(thinwire::torch ALIAS thinwire_torch)
  foreach(name torch_cpu c10 torch)
    add_library(thinwire_torch_${name} SHARED IMPORTED GLOBAL)
    set_target_properties(thinwire_torch_${name} PROPERTIES IMPORTED_LOCATION "${root}/lib/lib${name}.so" IMPORTED_NO_SONAME ON)
    target_link_libraries(thinwire_torch INTERFACE thinwire_torch_${name})
  endforeach()
  target_include_directories(thinwire_torch SYSTEM INTERFACE "${root}/include" "${root}/include/torch/csrc/api/include")
  # Without these two definitions the c10d headers are empty.
  target_compile_definitions(thinwire_torch INTERFACE USE_DISTRIBUTED USE_C10D_GLOO)
  # A CUDA wheel's libtorch_cpu.so finds its own libraries when it is loaded; the linker need not.
  target_link_options(thinwire_torch INTERFACE -Wl,--allow-shlib-undefined)
endfunction()
