//===- Einsum.cpp - sums of products by equation -------------------------------------------------===//
//
// The operands are multiplied from left to right. For each product the dimensions fall into four kinds: those of both
// sides that are still needed (batch), those of both that are not (contracted), and the rest of either side; so each is
// one matrix product [batch, left, contracted] x [batch, contracted, right].
//
//===----------------------------------------------------------------------===//
#include "compiler/import/ops/Algebra.h"
#include "compiler/import/ops/Ops.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace ds::import::ops {
namespace {

/// Dimensions by label: a letter, or for what "..." stands for a number below `letters` counted from the last.
using Labels = std::vector<int>;
constexpr int letters = 'A';

/// A value and what its dimensions are called.
struct Term {
  Value value;
  Labels labels;
};

bool holds(const Labels &labels, int label) { return std::find(labels.begin(), labels.end(), label) != labels.end(); }

[[noreturn]] void malformed(const std::string &equation, const std::string &why) {
  throw Failure("the equation '" + equation + "' " + why);
}

/// The labels of one term of the equation; "..." is `hidden` dimensions.
Labels parseTerm(const std::string &equation, const std::string &term, int64_t hidden) {
  Labels labels;
  bool dots = false;
  for (size_t i = 0; i < term.size(); ++i) {
    if (std::isalpha(static_cast<unsigned char>(term[i]))) {
      labels.push_back(term[i]);
    } else if (term.compare(i, 3, "...") == 0 && !dots) {
      for (int64_t d = hidden; d-- > 0;)
        labels.push_back(int(d));
      dots = true;
      i += 2;
    } else {
      malformed(equation, "holds '" + term.substr(i, 1) + "' where a letter or one \"...\" is expected");
    }
  }
  return labels;
}

struct Equation {
  std::vector<std::string> terms;
  std::optional<std::string> result;
};

Equation split(const std::string &equation) {
  std::string text;
  for (char c : equation)
    if (c != ' ')
      text += c;
  Equation parts;
  if (const size_t arrow = text.find("->"); arrow != std::string::npos) {
    parts.result = text.substr(arrow + 2);
    text.resize(arrow);
  }
  for (size_t at = 0;;) {
    const size_t comma = text.find(',', at);
    parts.terms.push_back(text.substr(at, comma - at));
    if (comma == std::string::npos)
      return parts;
    at = comma + 1;
  }
}

/// A label that stands twice in a term means its diagonal: of [.., n, n] seen as [.., n * n] every (n + 1)-th element.
Term withoutRepeats(Node &node, Term term) {
  for (size_t i = 0; i < term.labels.size(); ++i)
    for (size_t j = i + 1; j < term.labels.size(); ++j) {
      if (term.labels[i] != term.labels[j])
        continue;
      std::vector<int64_t> permutation;
      for (size_t d = 0; d < term.labels.size(); ++d)
        if (d != i && d != j)
          permutation.push_back(int64_t(d));
      permutation.insert(permutation.end(), {int64_t(i), int64_t(j)});
      Value moved = transpose(node, term.value, permutation);
      const int64_t size = moved.shape.back();
      Shape flat(moved.shape.begin(), moved.shape.end() - 2);
      flat.push_back(size * size);
      Shape sizes = flat, steps(flat.size(), 1);
      sizes.back() = size;
      steps.back() = size + 1;
      Term rest{slice(node, reshape(node, moved, flat), Shape(flat.size(), 0), sizes, steps), {}};
      for (int64_t d : permutation)
        rest.labels.push_back(term.labels[size_t(d)]);
      rest.labels.pop_back();
      return withoutRepeats(node, rest);
    }
  return term;
}

/// Sums over the dimensions that `keep` does not name.
Term summed(Node &node, const Term &term, const Labels &keep) {
  std::vector<int64_t> axes;
  Term result;
  for (size_t d = 0; d < term.labels.size(); ++d)
    if (holds(keep, term.labels[d]))
      result.labels.push_back(term.labels[d]);
    else
      axes.push_back(int64_t(d));
  result.value = reduce(node, ReduceFold::Sum, term.value, axes, false);
  return result;
}

/// The dimensions in the order of `labels`, which name each of them once.
Value ordered(Node &node, const Term &term, const Labels &labels) {
  std::vector<int64_t> permutation;
  for (int label : labels)
    permutation.push_back(std::find(term.labels.begin(), term.labels.end(), label) - term.labels.begin());
  return transpose(node, term.value, permutation);
}

class Contraction {
public:
  Contraction(Node &node, const std::string &equation) : node_(node), equation_(equation) {}

  void run() {
    Equation parts = split(equation_);
    if (parts.terms.size() != node_.inputs())
      malformed(equation_, "has " + std::to_string(parts.terms.size()) + " terms for " +
                               std::to_string(node_.inputs()) + " operands");
    readOperands(parts);
    const Labels result = resultLabels(parts);
    Term product = terms_[0];
    for (size_t i = 1; i < terms_.size(); ++i)
      product = multiply(product, terms_[i], neededAfter(i, result));
    node_.set(0, ordered(node_, summed(node_, product, result), result));
  }

private:
  void readOperands(const Equation &parts) {
    for (size_t i = 0; i < parts.terms.size(); ++i) {
      const Value operand = node_.floatIn(i);
      const auto named = int64_t(parseTerm(equation_, parts.terms[i], 0).size());
      const bool dots = parts.terms[i].find('.') != std::string::npos;
      if (dots ? named > operand.rank() : named != operand.rank())
        malformed(equation_, "names " + std::to_string(named) + " dimensions of operand " + std::to_string(i) + ", " +
                                 toString(operand.shape));
      hidden_ = std::max(hidden_, operand.rank() - named);
      terms_.push_back({operand, parseTerm(equation_, parts.terms[i], operand.rank() - named)});
      for (size_t d = 0; d < terms_.back().labels.size(); ++d)
        noteSize(terms_.back().labels[d], operand.shape[d]);
    }
    for (Term &term : terms_) {
      Shape wide;
      for (int label : term.labels)
        wide.push_back(sizes_.at(label));
      term.value = broadcastTo(node_, term.value, wide);
      term = withoutRepeats(node_, term);
    }
  }

  void noteSize(int label, int64_t size) {
    const auto [found, inserted] = sizes_.try_emplace(label, size);
    if (inserted || found->second == size || size == 1)
      return;
    if (found->second != 1)
      malformed(equation_, "gives " + (label >= letters ? "'" + std::string(1, char(label)) + "'" : "\"...\"") +
                               " the sizes " + std::to_string(found->second) + " and " + std::to_string(size));
    found->second = size;
  }

  /// Without "->": what "..." stands for, then every letter that stands once, sorted.
  Labels resultLabels(const Equation &parts) const {
    if (parts.result) {
      const Labels labels = parseTerm(equation_, *parts.result, hidden_);
      for (int label : labels)
        if (!sizes_.count(label) || std::count(labels.begin(), labels.end(), label) > 1)
          malformed(equation_, "has a result with a dimension that no operand has, or twice");
      return labels;
    }
    Labels labels = parseTerm(equation_, hidden_ > 0 ? "..." : "", hidden_);
    std::map<char, int> uses;
    for (const std::string &term : parts.terms)
      for (char c : term)
        uses[c] += c != '.';
    for (const auto &[letter, count] : uses)
      if (count == 1)
        labels.push_back(letter);
    return labels;
  }

  Labels neededAfter(size_t i, const Labels &result) const {
    Labels needed = result;
    for (size_t later = i + 1; later < terms_.size(); ++later)
      needed.insert(needed.end(), terms_[later].labels.begin(), terms_[later].labels.end());
    return needed;
  }

  int64_t count(const Labels &labels) const {
    int64_t product = 1;
    for (int label : labels)
      product *= sizes_.at(label);
    return product;
  }

  Term multiply(Term lhs, Term rhs, const Labels &needed) {
    Labels left = needed, right = needed;
    left.insert(left.end(), rhs.labels.begin(), rhs.labels.end());
    right.insert(right.end(), lhs.labels.begin(), lhs.labels.end());
    lhs = summed(node_, lhs, left);
    rhs = summed(node_, rhs, right);
    Labels batch, contracted, lhsOnly, rhsOnly;
    for (int label : lhs.labels)
      (!holds(rhs.labels, label) ? lhsOnly : holds(needed, label) ? batch : contracted).push_back(label);
    for (int label : rhs.labels)
      if (!holds(lhs.labels, label))
        rhsOnly.push_back(label);
    auto join = [](std::initializer_list<Labels> lists) {
      Labels joined;
      for (const Labels &list : lists)
        joined.insert(joined.end(), list.begin(), list.end());
      return joined;
    };
    const int64_t batches = count(batch), rows = count(lhsOnly), inner = count(contracted), columns = count(rhsOnly);
    const Value a = reshape(node_, ordered(node_, lhs, join({batch, lhsOnly, contracted})), {batches, rows, inner});
    const Value b = reshape(node_, ordered(node_, rhs, join({batch, contracted, rhsOnly})), {batches, inner, columns});
    const mlir::Value x = node_.operand(a), y = node_.operand(b);
    const Labels labels = join({batch, lhsOnly, rhsOnly});
    Shape shape;
    for (int label : labels)
      shape.push_back(sizes_.at(label));
    return {reshape(node_, Value::of(node_.create<train::MatmulOp>({x, y}).getResult()), shape), labels};
  }

  Node &node_;
  std::string equation_;
  std::vector<Term> terms_;
  std::map<int, int64_t> sizes_;
  int64_t hidden_ = 0; // dimensions that "..." stands for, at most
};

} // namespace

void einsum(Node &node) { Contraction(node, node.stringAttr("equation", "")).run(); }

} // namespace ds::import::ops
