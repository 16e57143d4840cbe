# Says at the end of the configure step what will be built and why something will not.
if(THINWIRE_HAS_TORCH)
  message(STATUS "thinwire ${PROJECT_VERSION}: training half with torch ${THINWIRE_TORCH_VERSION}")
else()
  message(STATUS "thinwire ${PROJECT_VERSION}: no training half: ${THINWIRE_TORCH_WHY}")
endif()
