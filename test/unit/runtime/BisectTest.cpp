// BisectTest.cpp: digests of pieces, and how tensors that are cut differently compare.
#include "runtime/bisect/Comparison.h"
#include "runtime/bisect/Digest.h"
#include "runtime/bisect/Tensor.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ds::runtime {
namespace {

const TensorKey key{.step = 1, .op = 3};
using Values = std::vector<float>;

Piece piece(const Values &values, uint64_t first, uint64_t elements, uint32_t rank) {
  return {.first = first,
          .count = values.size(),
          .elements = elements,
          .dtype = DType::F32,
          .writer = {.rank = rank},
          .digest = digestOf(std::as_bytes(std::span(values)).data(), 4, first, values.size())};
}

TEST(Digest, OfPiecesAddsUp) {
  const Values whole = {1, 2, 3, 4, 5};
  for (uint64_t cut = 0; cut <= whole.size(); ++cut) {
    const auto at = whole.begin() + ptrdiff_t(cut);
    EXPECT_EQ(piece(whole, 0, 5, 0).digest,
              piece({whole.begin(), at}, 0, 5, 0).digest + piece({at, whole.end()}, cut, 5, 0).digest);
  }
}

TEST(Digest, KnowsPlacesAndSigns) {
  EXPECT_NE(piece({1, 2}, 0, 2, 0).digest, piece({2, 1}, 0, 2, 0).digest);
  EXPECT_NE(piece({0, 0}, 0, 2, 0).digest, piece({0, -0.0F}, 0, 2, 0).digest);
  EXPECT_NE(piece({1}, 0, 2, 0).digest, piece({1}, 1, 2, 0).digest);
}

TEST(Comparison, OfCutsThatDiffer) {
  const std::vector<Piece> a = {piece({1, 2, 3, 4, 5}, 0, 5, 0)};
  const Comparison equal = compare({{key, {a, {{piece({4, 5}, 3, 5, 1), piece({1, 2, 3}, 0, 5, 0)}}}}});
  EXPECT_FALSE(equal.difference);
  EXPECT_EQ(equal.equal, 1U);
  EXPECT_EQ(equal.inPieces, 1U);
  const Comparison wrong = compare({{key, {a, {{piece({4, 6}, 3, 5, 1), piece({1, 2, 3}, 0, 5, 0)}}}}});
  ASSERT_TRUE(wrong.difference);
  EXPECT_EQ(wrong.difference->other.pieces.size(), 2U);
  EXPECT_EQ(wrong.difference->other.pieces[0].first, 0U);
}

TEST(Comparison, OfReplicas) {
  const Piece right = piece({1, 2}, 0, 2, 0), alike = piece({1, 2}, 0, 2, 1), wrong = piece({1, 3}, 0, 2, 2);
  EXPECT_FALSE(compare({{key, {{{right}, {right, alike}}}}}).difference);
  const Comparison found = compare({{key, {{{right}, {right, alike, wrong}}}}});
  ASSERT_TRUE(found.difference);
  EXPECT_EQ(found.difference->one.plan, 0);
  EXPECT_EQ(found.difference->other.pieces[0].writer.rank, 2U);
  const Comparison among = compare({{key, {{{}, {right, wrong}}}}}); // A does not have it
  ASSERT_TRUE(among.difference);
  EXPECT_EQ(among.difference->one.plan, 1);
}

TEST(Comparison, OfWhatOnePlanHas) {
  const Piece half = piece({1, 2}, 0, 4, 0), whole = piece({1, 2, 3, 4}, 0, 4, 0);
  for (const TensorPieces &tensors : {TensorPieces{{key, {{{whole}, {}}}}}, TensorPieces{{key, {{{whole}, {half}}}}}}) {
    const Comparison comparison = compare(tensors);
    EXPECT_FALSE(comparison.difference);
    EXPECT_EQ(comparison.equal, 0U);
    EXPECT_EQ(comparison.inOnePlan, 1U);
  }
}

TEST(Comparison, LooksAtWhatATailWritesInsteadOfWhatWasBefore) {
  Piece again = piece({1, 3}, 0, 2, 0);
  again.isAgain = true;
  std::vector<Piece> pieces;
  for (const Piece &each : {piece({1}, 0, 2, 0), piece({2}, 1, 2, 0), piece({1, 2}, 0, 2, 1), again})
    addPiece(each, pieces);
  ASSERT_EQ(pieces.size(), 2U);
  EXPECT_EQ(pieces[0].writer.rank, 1U) << "of another rank, whose tail is still to come";
  EXPECT_TRUE(pieces[1].isAgain);
}

TEST(Comparison, EndsAtTheFirstDifference) {
  TensorKey later = key, update = key;
  later.microbatch = 1;
  update.phase = TensorKey::Update;
  const Piece one = piece({1}, 0, 1, 0), two = piece({2}, 0, 1, 0);
  const Comparison comparison =
      compare({{update, {{{one}, {two}}}}, {later, {{{one}, {two}}}}, {key, {{{one}, {one}}}}});
  ASSERT_TRUE(comparison.difference);
  EXPECT_EQ(comparison.difference->key, later);
  EXPECT_EQ(comparison.equal, 1U);
}

} // namespace
} // namespace ds::runtime
