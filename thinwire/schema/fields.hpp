// JSON of a struct from one list of its fields, which writes it and reads it strictly: nothing missing, nothing
// unknown, every type as declared. Private.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace thinwire::schema {

using Json = nlohmann::ordered_json;

// Specialised beside each struct that has a JSON form: `static void visit(auto& value, auto&& field)` calls
// field(name, member) for every member, in the order of the JSON.
template <class Struct>
struct FieldsOf;

template <class Struct>
Json object_of(const Struct& value);

// Throws Error kCorrupt when a field is missing, unknown or of another type; `path` leads to the object: "" at the top,
// "buckets[2]" inside. The message: "[place] field buckets[2].codec; got a number, want a string".
template <class Struct>
Struct struct_of(const char* place, const std::string& path, const Json& object);

// Throws Error kCorrupt when `text` is no JSON.
Json parse_json(const char* place, const std::string& text);

class Fields {
 public:
  Fields(const char* place, std::string path, const Json& object);

  void read(const char* name, std::string& value);
  void read(const char* name, std::int64_t& value);
  void read(const char* name, int& value);
  void read(const char* name, bool& value);
  void read(const char* name, double& value);  // null reads as NaN
  void read(const char* name, std::optional<double>& value);
  void read(const char* name, std::optional<std::int64_t>& value);

  template <class Struct>
  void read(const char* name, std::vector<Struct>& values) {
    for (const Json& item : array(name)) {
      const std::string index = "[" + std::to_string(values.size()) + "]";
      values.push_back(struct_of<Struct>(place_, path_to(name) + index, item));
    }
  }

  // Call last: throws when there is a field that nobody asked for.
  void finish() const;

 private:
  const Json& array(const char* name);
  const Json& take(const char* name);
  std::string path_to(const std::string& name) const;
  [[noreturn]] void refuse(const std::string& name, const std::string& got, const char* want) const;

  const char* place_;
  std::string path_;
  const Json& object_;
  std::set<std::string> taken_;
};

template <class Value>
Json json_of(const Value& value) {
  return value;
}

template <class Value>
Json json_of(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

template <class Struct>
Json json_of(const std::vector<Struct>& values) {
  Json list = Json::array();
  for (const Struct& value : values) list.push_back(object_of(value));
  return list;
}

template <class Struct>
Json object_of(const Struct& value) {
  Json object = Json::object();
  FieldsOf<Struct>::visit(value, [&](const char* name, const auto& member) { object[name] = json_of(member); });
  return object;
}

template <class Struct>
Struct struct_of(const char* place, const std::string& path, const Json& object) {
  Fields fields(place, path, object);
  Struct value;
  FieldsOf<Struct>::visit(value, [&](const char* name, auto& member) { fields.read(name, member); });
  fields.finish();
  return value;
}

}  // namespace thinwire::schema
