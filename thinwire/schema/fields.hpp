// Reads the fields of a JSON object strictly: nothing missing, nothing unknown, every type as declared. Private.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>

namespace thinwire::schema {

using Json = nlohmann::ordered_json;

// Throws Error kCorrupt: "[place] field buckets[2].codec; got a number, want a text".
class Fields {
 public:
  // `path` leads to the object: "" at the top, "buckets[2]" inside.
  Fields(const char* place, std::string path, const Json& object);

  std::string text(const char* name);
  std::int64_t integer(const char* name);
  int small_integer(const char* name);
  bool boolean(const char* name);
  double number(const char* name);  // null reads as NaN
  std::optional<double> number_or_null(const char* name);
  const Json& array(const char* name);

  // Call last: throws when there is a field that nobody asked for.
  void finish() const;

  std::string path_to(const std::string& name) const;

 private:
  const Json& take(const char* name);
  [[noreturn]] void refuse(const std::string& name, const std::string& got, const char* want) const;

  const char* place_;
  std::string path_;
  const Json& object_;
  std::set<std::string> taken_;
};

// Throws Error kCorrupt when `text` is no JSON.
Json parse_json(const char* place, const std::string& text);

}  // namespace thinwire::schema
