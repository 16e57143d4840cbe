#include "thinwire/schema/fields.hpp"

#include <limits>

#include "thinwire/base/error.hpp"

namespace thinwire::schema {
namespace {

std::string kind_of(const Json& value) {
  const std::string name = value.type_name();
  return name == "array" || name == "object" ? "an " + name : name == "null" ? name : "a " + name;
}

}  // namespace

Fields::Fields(const char* place, std::string path, const Json& object)
    : place_(place), path_(std::move(path)), object_(object) {
  if (object_.is_object()) return;
  fail(ErrorCode::kCorrupt, {.place = place_,
                             .what = path_.empty() ? "document" : "field " + path_,
                             .got = kind_of(object_),
                             .want = "an object",
                             .hint = ""});
}

std::string Fields::path_to(const std::string& name) const {
  return path_.empty() ? name : path_ + "." + name;
}

void Fields::refuse(const std::string& name, const std::string& got, const char* want) const {
  fail(ErrorCode::kCorrupt, {.place = place_, .what = "field " + path_to(name), .got = got, .want = want, .hint = ""});
}

const Json& Fields::take(const char* name) {
  taken_.insert(name);
  const auto found = object_.find(name);
  if (found == object_.end()) refuse(name, "nothing", "a value");
  return *found;
}

std::string Fields::text(const char* name) {
  const Json& value = take(name);
  if (!value.is_string()) refuse(name, kind_of(value), "a string");
  return value.get<std::string>();
}

std::int64_t Fields::integer(const char* name) {
  const Json& value = take(name);
  const bool too_large = value.is_number_unsigned() &&
                         value.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()};
  if (!value.is_number_integer() || too_large)
    refuse(name, value.is_number() ? value.dump() : kind_of(value), "an integer");
  return value.get<std::int64_t>();
}

int Fields::small_integer(const char* name) {
  const std::int64_t value = integer(name);
  if (value < std::numeric_limits<int>::min() || value > std::numeric_limits<int>::max())
    refuse(name, std::to_string(value), "an integer of 32 bits");
  return static_cast<int>(value);
}

bool Fields::boolean(const char* name) {
  const Json& value = take(name);
  if (!value.is_boolean()) refuse(name, kind_of(value), "true or false");
  return value.get<bool>();
}

double Fields::number(const char* name) {
  return number_or_null(name).value_or(std::numeric_limits<double>::quiet_NaN());
}

std::optional<double> Fields::number_or_null(const char* name) {
  const Json& value = take(name);
  if (value.is_null()) return std::nullopt;
  if (!value.is_number()) refuse(name, kind_of(value), "a number");
  return value.get<double>();
}

const Json& Fields::array(const char* name) {
  const Json& value = take(name);
  if (!value.is_array()) refuse(name, kind_of(value), "an array");
  return value;
}

void Fields::finish() const {
  for (const auto& [name, value] : object_.items())
    if (!taken_.contains(name)) refuse(name, kind_of(value), "no such field");
}

Json parse_json(const char* place, const std::string& text) {
  try {
    return Json::parse(text);
  } catch (const nlohmann::json::exception& problem) {
    fail(ErrorCode::kCorrupt, {.place = place, .what = "JSON", .got = problem.what(), .want = "", .hint = ""});
  }
}

}  // namespace thinwire::schema
