// The little of JSON that the plug-ins need: whole numbers, no escapes but of quotes and backslashes.
#ifndef HALIDE_SDK_JSON
#define HALIDE_SDK_JSON

#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace halide_sdk {

struct Json {
    enum Kind { Null, Bool, Number, Text, Array, Object };

    Kind kind = Null;
    int64_t number = 0;
    std::string text;
    std::vector<Json> items;
    // Of an object, beside `items`.
    std::vector<std::string> names;

    const Json &operator[](const std::string &name) const {
        static const Json missing;
        for (size_t i = 0; i < names.size(); i++) {
            if (names[i] == name) return items[i];
        }
        return missing;
    }

    const Json &operator[](size_t index) const {
        if (index >= items.size()) throw std::runtime_error("an item is missing");
        return items[index];
    }

    explicit operator bool() const { return kind != Null; }
};

class JsonReader {
public:
    explicit JsonReader(const std::string &text) : text_(text) {}

    // Throws std::runtime_error where the text is not of this kind of JSON.
    Json read() {
        Json value = value_at_depth(0);
        if (next() != '\0') fail();
        return value;
    }

private:
    const std::string &text_;
    size_t position_ = 0;
    static constexpr int deepest = 200;

    [[noreturn]] void fail() const {
        throw std::runtime_error("unexpected text at character " + std::to_string(position_));
    }

    char next() {
        while (position_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[position_]))) position_++;
        return position_ < text_.size() ? text_[position_] : '\0';
    }

    void expect(char c) {
        if (next() != c) fail();
        position_++;
    }

    bool take(const std::string &word) {
        if (text_.compare(position_, word.size(), word) != 0) return false;
        position_ += word.size();
        return true;
    }

    Json value_at_depth(int depth) {
        if (depth > deepest) fail();
        Json value;
        const char c = next();
        if (c == '{' || c == '[') {
            list(c, depth, &value);
        } else if (c == '"') {
            value.kind = Json::Text;
            value.text = string();
        } else if (take("null")) {
            value.kind = Json::Null;
        } else if (take("true") || take("false")) {
            value.kind = Json::Bool;
            value.number = text_[position_ - 2] == 'u';
        } else {
            const char *start = text_.c_str() + position_;
            char *end = nullptr;
            value.kind = Json::Number;
            value.number = std::strtoll(start, &end, 10);
            if (end == start) fail();
            position_ += end - start;
        }
        return value;
    }

    void list(char open, int depth, Json *value) {
        const char close = open == '{' ? '}' : ']';
        value->kind = open == '{' ? Json::Object : Json::Array;
        expect(open);
        while (next() != close) {
            if (!value->items.empty()) expect(',');
            if (open == '{') {
                next();
                value->names.push_back(string());
                expect(':');
            }
            value->items.push_back(value_at_depth(depth + 1));
        }
        position_++;
    }

    std::string string() {
        expect('"');
        std::string result;
        while (position_ < text_.size() && text_[position_] != '"') {
            if (text_[position_] == '\\') position_++;
            if (position_ < text_.size()) result += text_[position_++];
        }
        expect('"');
        return result;
    }
};

// A value of any kind, as text.
inline std::string quoted(const std::string &text) {
    std::string result = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') result += '\\';
        result += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
    return result + "\"";
}

inline std::string listed(const std::vector<std::string> &values) {
    std::string result;
    for (const std::string &value : values) {
        result += (result.empty() ? "" : ", ") + value;
    }
    return "[" + result + "]";
}

// The list of the texts that `to_text` makes of the values.
template<typename T, typename ToText>
std::string list_of(const T &values, ToText to_text) {
    std::vector<std::string> texts;
    for (const auto &value : values) texts.push_back(to_text(value));
    return listed(texts);
}

inline std::string object(const std::vector<std::pair<std::string, std::string>> &members) {
    std::string result;
    for (const auto &member : members) {
        result += (result.empty() ? "" : ", ") + quoted(member.first) + ": " + member.second;
    }
    return "{" + result + "}";
}

inline std::string truth(bool value) { return value ? "true" : "false"; }

}  // namespace halide_sdk

#endif  // HALIDE_SDK_JSON
