# Files that become part of the program.
macro(embed variable path)
  file(READ ${path} ${variable})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
endmacro()

# Of files in `folder`: NAME_files, the text of an array of embedded files; NAME_checksums, as sha256sum writes them;
# NAME_hash, the beginning of a hash of them all.
function(embed_folder variable folder)
  set(hashes "")
  foreach(name IN LISTS ARGN)
    embed(text ${folder}/${name})
    file(SHA256 ${folder}/${name} hash)
    string(APPEND hashes "${hash}  ${name}\n")
    string(APPEND array "    {\"${name}\", R\"kclxx(${text})kclxx\"},\n")
  endforeach()
  string(SHA256 hash "${hashes}")
  string(SUBSTRING ${hash} 0 12 hash)
  set(${variable}_files "${array}" PARENT_SCOPE)
  set(${variable}_checksums "${hashes}" PARENT_SCOPE)
  set(${variable}_hash ${hash} PARENT_SCOPE)
endfunction()
