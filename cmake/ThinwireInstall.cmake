# Where programs lie in the build tree, and what `cmake --install` lays down, so that find_package(thinwire) works outside.
include(CMakePackageConfigHelpers)

# Every executable of a folder and those below it.
function(thinwire_executables_below folder out)
  get_property(targets DIRECTORY "${folder}" PROPERTY BUILDSYSTEM_TARGETS)
  get_property(subfolders DIRECTORY "${folder}" PROPERTY SUBDIRECTORIES)
  set(found "")
  foreach(target ${targets})
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "EXECUTABLE")
      list(APPEND found ${target})
    endif()
  endforeach()
  foreach(subfolder ${subfolders})
    thinwire_executables_below("${subfolder}" below)
    list(APPEND found ${below})
  endforeach()
  set(${out} "${found}" PARENT_SCOPE)
endfunction()

# Included before the tests are added: what is there now are the command, the bench programs and the examples.
thinwire_executables_below("${PROJECT_SOURCE_DIR}" thinwire_programs)
if(thinwire_programs)
  set_target_properties(${thinwire_programs} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin"
                                                        INSTALL_RPATH_USE_LINK_PATH ON)
endif()
foreach(program ${thinwire_programs})
  get_target_property(folder ${program} SOURCE_DIR)
  if(NOT folder MATCHES "^${PROJECT_SOURCE_DIR}/examples")
    install(TARGETS ${program} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
  endif()
endforeach()

# thinwire::thinwire is everything a training program links; cli is for the command only.
get_property(thinwire_rooms GLOBAL PROPERTY THINWIRE_ROOMS)
list(REMOVE_ITEM thinwire_rooms thinwire_cli)
add_library(thinwire_everything INTERFACE)
add_library(thinwire::thinwire ALIAS thinwire_everything)
target_link_libraries(thinwire_everything INTERFACE ${thinwire_rooms})
set_target_properties(thinwire_everything PROPERTIES EXPORT_NAME thinwire)
set_target_properties(thinwire_flags PROPERTIES EXPORT_NAME flags)

# What a room offers; the other headers are between its own files. tests/install checks that these need no others.
set(thinwire_public_headers
    base/clock.hpp base/error.hpp base/file.hpp base/hash.hpp base/log.hpp base/rng.hpp
    codec/codec.hpp codec/error_feedback.hpp codec/fused.hpp codec/implementation.hpp codec/values.hpp
    schema/step_report.hpp
    watch/chrome_trace.hpp watch/jsonl.hpp watch/timeline.hpp)
if(THINWIRE_HAS_TORCH)
  list(APPEND thinwire_public_headers
       thinwire.hpp
       comm/counters.hpp comm/group.hpp comm/process_group_world.hpp comm/progress.hpp comm/world.hpp
       train/checkpoint/checkpoint.hpp
       train/ddp/data_parallel.hpp
       train/optim/adamw.hpp train/optim/group_options.hpp train/optim/one_bit_adam.hpp train/optim/sgd.hpp)
endif()

set(thinwire_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/thinwire")
install(TARGETS ${thinwire_rooms} thinwire_everything thinwire_flags EXPORT thinwireTargets
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(EXPORT thinwireTargets NAMESPACE thinwire:: DESTINATION "${thinwire_package_dir}")
foreach(header ${thinwire_public_headers})
  get_filename_component(folder "thinwire/${header}" DIRECTORY)
  install(FILES "${PROJECT_SOURCE_DIR}/thinwire/${header}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/${folder}")
endforeach()

configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/thinwireConfig.cmake.in"
                              "${PROJECT_BINARY_DIR}/package/thinwireConfig.cmake"
                              INSTALL_DESTINATION "${thinwire_package_dir}" NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/package/thinwireConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/package/thinwireConfig.cmake" "${PROJECT_BINARY_DIR}/package/thinwireConfigVersion.cmake"
              "${CMAKE_CURRENT_LIST_DIR}/ThinwireFindTorch.cmake" "${CMAKE_CURRENT_LIST_DIR}/find_torch.py"
        DESTINATION "${thinwire_package_dir}")
