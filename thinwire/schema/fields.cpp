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

void Fields::read(const char* name, std::string& value) {
  const Json& found = take(name);
  if (!found.is_string()) refuse(name, kind_of(found), "a string");
  value = found.get<std::string>();
}

void Fields::read(const char* name, std::int64_t& value) {
  const Json& found = take(name);
  const bool too_large = found.is_number_unsigned() &&
                         found.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()};
  if (!found.is_number_integer() || too_large)
    refuse(name, found.is_number() ? found.dump() : kind_of(found), "an integer");
  value = found.get<std::int64_t>();
}

void Fields::read(const char* name, int& value) {
  std::int64_t wide = 0;
  read(name, wide);
  if (wide < std::numeric_limits<int>::min() || wide > std::numeric_limits<int>::max())
    refuse(name, std::to_string(wide), "an integer of 32 bits");
  value = static_cast<int>(wide);
}

void Fields::read(const char* name, bool& value) {
  const Json& found = take(name);
  if (!found.is_boolean()) refuse(name, kind_of(found), "true or false");
  value = found.get<bool>();
}

void Fields::read(const char* name, double& value) {
  std::optional<double> number;
  read(name, number);
  value = number.value_or(std::numeric_limits<double>::quiet_NaN());
}

void Fields::read(const char* name, std::optional<double>& value) {
  const Json& found = take(name);
  if (!found.is_null() && !found.is_number()) refuse(name, kind_of(found), "a number");
  value = found.is_null() ? std::nullopt : std::optional(found.get<double>());
}

void Fields::read(const char* name, std::optional<std::int64_t>& value) {
  value.reset();
  if (!take(name).is_null()) read(name, value.emplace());
}

const Json& Fields::array(const char* name) {
  const Json& found = take(name);
  if (!found.is_array()) refuse(name, kind_of(found), "an array");
  return found;
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
