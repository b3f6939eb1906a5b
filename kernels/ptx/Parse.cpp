//===- Parse.cpp - a module's directives -----------------------------------===//
//
// ISA 11 (directives): version, target, address size, and entries with their parameters and bounds.
//
//===----------------------------------------------------------------------===//
#include "kernels/ptx/Code.h"
#include "kernels/ptx/Decoder.h"
#include "kernels/ptx/Sentence.h"

#include <algorithm>
#include <set>
#include <string>

namespace ds::ptx {

namespace {

constexpr size_t mostParameters = 1024;
constexpr uint32_t mostThreads = 1024;
constexpr size_t mostSlots = size_t(1) << 22; ///< a short text may declare many registers

/// ".param .u64 .ptr .global .align 16 name"
void readParameter(Tokens &tokens, Decoder &decoder) {
  tokens.expect(".param");
  const std::string_view word = tokens.word("a type");
  const auto type = typeNamed(word.substr(word.starts_with('.')));
  if (!type || type->isPredicate() || type->lanes > 1)
    tokens.refuse(sentence("parameters of type {} are not emulated", word));
  if (tokens.accept(".ptr") && !tokens.accept(".global") && !tokens.is(".align") && tokens.peek().text.starts_with('.'))
    tokens.refuse("of the state spaces only .global is emulated");
  if (tokens.accept(".align"))
    (void)tokens.integer("an alignment", 1 << 16);
  decoder.addParameter(tokens.word("a parameter's name"), *type);
}

/// "x", "x, y" or "x, y, z": how many threads that is.
uint32_t readThreads(Tokens &tokens) {
  uint64_t product = 1;
  do
    product *= tokens.integer("a number of threads", mostThreads);
  while (product > 0 && product <= mostThreads && tokens.accept(","));
  if (product == 0 || product > mostThreads)
    tokens.refuse(sentence("a block has 1 to {} threads", mostThreads));
  return uint32_t(product);
}

/// Directives between the parameters and the body. ISA 11.4.
void readBounds(Tokens &tokens, Entry &entry) {
  while (!tokens.is("{"))
    if (tokens.accept(".maxntid"))
      entry.mostThreads = readThreads(tokens);
    else if (tokens.accept(".reqntid"))
      entry.mostThreads = entry.exactThreads = readThreads(tokens);
    else if (tokens.accept(".minnctapersm") || tokens.accept(".maxnreg"))
      (void)tokens.integer("a number", 1 << 16);
    else
      tokens.refuse("a directive of an entry, or its body, is expected");
}

Entry readEntry(Tokens &tokens) {
  Entry entry;
  entry.name = std::string(tokens.word("an entry's name"));
  Decoder decoder(tokens, entry);
  if (tokens.accept("(") && !tokens.accept(")")) {
    do {
      readParameter(tokens, decoder);
      if (entry.parameterBytes.size() > mostParameters)
        tokens.refuse(sentence("an entry has at most {} parameters", mostParameters));
    } while (tokens.accept(","));
    tokens.expect(")");
  }
  readBounds(tokens, entry);
  decoder.body();
  return entry;
}

} // namespace

const Entry *Module::find(std::string_view name) const {
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const Entry &e) { return e.name == name; });
  return found != entries.end() ? &*found : nullptr;
}

Module parse(std::string_view text) {
  Tokens tokens(text);
  Module module;
  tokens.expect(".version");
  if (tokens.peek().kind != Token::Kind::Number)
    tokens.refuse("a version is expected");
  module.version = std::string(tokens.next().text);
  tokens.expect(".target");
  module.target = std::string(tokens.word("a target"));
  if (!module.target.starts_with("sm_"))
    tokens.refuse("a target is sm_ and a number");
  tokens.expect(".address_size");
  if (tokens.integer("an address size", 64) != 64)
    tokens.refuse("addresses have 64 bits");
  std::set<std::string> names;
  size_t slots = 0;
  while (tokens.peek().kind != Token::Kind::End) {
    (void)tokens.accept(".visible");
    if (!tokens.accept(".entry"))
      tokens.refuse("only entries are emulated: no functions, no variables");
    module.entries.push_back(readEntry(tokens));
    const Entry &entry = module.entries.back();
    if (!names.insert(entry.name).second)
      tokens.refuse(sentence("two entries have the name {}", entry.name));
    slots += entry.code->constants.size();
    if (slots > mostSlots)
      tokens.refuse(sentence("all entries together have more than {} registers and constants", mostSlots));
  }
  return module;
}

} // namespace ds::ptx
