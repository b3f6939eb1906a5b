//===- RunValues.cpp - what commands compute and sums hold ----------------===//
#include "compiler/check/Run.h"

#include "runtime/plan/Groups.h"

#include <algorithm>

namespace ds::check {

uint32_t Run::held(const proto::Operand &operand, uint64_t microbatch) {
  const std::vector<Piece> pieces = piecesOf(operand, 0, byteCount(operand), microbatch);
  if (std::ranges::all_of(pieces, [](const Piece &piece) { return piece.value == Values::unknown; }))
    return Values::unknown;
  for (const Piece &piece : pieces)
    if (piece.value != pieces[0].value || piece.valueByte != piece.begin)
      return Values::other;
  // What a step has stored in a variable that outlives it is what the next one finds there.
  const proto::Buffer &buffer = bufferOf(operand);
  const bool isStored = buffer.has_variable() && pieces[0].value == meaning_.values().storedIn(buffer.variable());
  return isStored ? meaning_.values().variable(buffer.variable()) : pieces[0].value;
}

std::vector<Meaning::Result> Run::resultsOf(const std::vector<Effect> &effects, size_t index) {
  const proto::Command &command = *timeline_.instances[index].command;
  const uint64_t microbatch = timeline_.instances[index].microbatch;
  std::vector<uint32_t> values;
  for (const Effect &effect : effects)
    values.push_back(effect.reads ? held(*effect.operand, microbatch) : uint32_t(Values::unknown));
  try {
    if (isOptimizer(command))
      requireGradient(command, values, index);
    if (command.has_kernel() && command.kernel().kernel() == "global_norm") {
      requireEachPartOnce(command.kernel(), microbatch);
      requireEveryPart(command, values);
    }
    if (command.has_collective())
      requireSum(command, values);
    if (command.has_collective() && command.collective().kind() == proto::CollectiveCommand::REDUCE_SCATTER)
      for (const proto::CollectivePart &part : command.collective().parts())
        requireSlices(part, index);
    noteSums(command);
    if (command.has_kernel())
      return meaning_.resultsOf(command, values);
  } catch (const Mismatch &mismatch) {
    refuse("meaning", index, mismatch.sentence);
  }
  std::vector<Meaning::Result> results(effects.size());
  if (command.has_fill())
    results[0].value = meaning_.values().constant(0);
  if (command.has_feed())
    results[0].value = meaning_.values().input(plan_.inputs(int(command.feed().input())).name());
  return results;
}

void Run::requireEachPartOnce(const proto::KernelCommand &kernel, uint64_t microbatch) const {
  std::vector<Range> parts;
  for (const proto::Operand &operand : kernel.operands())
    if (operand.access() == proto::Operand::READ)
      parts.push_back(rangeOf(operand, microbatch));
  std::ranges::sort(parts, {}, [](const Range &part) { return std::pair(part.arena, part.begin); });
  for (size_t i = 1; i < parts.size(); ++i)
    if (parts[i].arena == parts[i - 1].arena && parts[i].begin < parts[i - 1].end)
      throw Mismatch{"it counts a part of the gradients twice"};
}

void Run::requireEveryPart(const proto::Command &command, std::span<const uint32_t> values) {
  if (only_ || command.reference_size() != 1)
    return;
  std::vector<uint32_t> missing;
  for (uint32_t operand : plan_.reference().ops(int(command.reference(0))).operands())
    missing.push_back(meaning_.values().of(operand));
  for (int i = 0; i < command.kernel().operands_size(); ++i) {
    if (command.kernel().operands(i).access() != proto::Operand::READ ||
        values[size_t(i)] == meaning_.values().constant(0))
      continue;
    const auto found = std::ranges::find(missing, values[size_t(i)]);
    if (values[size_t(i)] == Values::unknown)
      return; // of slices, which have no number
    if (found == missing.end())
      throw Mismatch{"operand " + std::to_string(i) + " holds " + meaning_.values().name(values[size_t(i)]) +
                     ", which is no part of the norm or was counted"};
    missing.erase(found);
  }
  if (!missing.empty())
    throw Mismatch{"it lacks " + meaning_.values().name(missing[0])};
}

void Run::noteSums(const proto::Command &command) {
  for (uint32_t reference : command.reference())
    if (plan_.reference().ops(int(reference)).op() == "train.accumulate")
      ++sums_[reference];
}

bool Run::sumsAllRanks(const proto::CollectiveCommand &collective) const {
  const proto::Training &training = plan_.training();
  return plan::groupSize(plan_, collective.communicator()) * training.micro_batch_size() *
             training.accumulation_steps() ==
         training.train_batch_size();
}

void Run::requireSum(const proto::Command &command, std::span<const uint32_t> values) {
  const proto::CollectiveCommand &collective = command.collective();
  for (uint32_t reference : command.reference()) {
    const proto::ReferenceOp &op = plan_.reference().ops(int(reference));
    if (op.op() != "train.accumulate")
      continue;
    const uint64_t ranks = plan::groupSize(plan_, collective.communicator());
    if (collective.kind() != proto::CollectiveCommand::ALL_REDUCE &&
        collective.kind() != proto::CollectiveCommand::REDUCE_SCATTER)
      throw Mismatch{"it is no sum, but is said to be " + op.op()};
    if (!sumsAllRanks(collective))
      throw Mismatch{"it sums over " + std::to_string(ranks) + " ranks, not over all that have micro-batches"};
    // Of gradients, which lie in buckets, the optimizer asks what they are sums of.
    if (plan_.variables(int(op.variables(0))).kind() != proto::Variable::GRADIENT && collective.parts_size() == 1 &&
        !mayBe(values[0], meaning_.values().of(op.operands(0))))
      throw Mismatch{"it sums " + meaning_.values().name(values[0]) + ", but " + op.op() + " adds " +
                     meaning_.values().name(meaning_.values().of(op.operands(0)))};
  }
}

std::vector<Piece> Run::piecesOf(const proto::Operand &operand, uint64_t skip, uint64_t bytes, uint64_t microbatch) {
  const Range range = rangeOf(operand, microbatch);
  std::vector<Piece> pieces;
  if (isFollowed(range))
    shadows_[range.arena].over(range.begin + skip, range.begin + skip + bytes, [&](uint64_t begin, Segment &segment) {
      const Content &content = segment.content;
      pieces.push_back({begin - range.begin - skip, segment.end - range.begin - skip, content.terms, content.updated,
                        content.value, content.valueByte});
    });
  return pieces;
}

std::vector<Piece> Run::valueOf(const proto::Operand &target, const std::vector<Effect> &effects,
                                const Meaning::Result &result, size_t index) {
  const Instance &instance = timeline_.instances[index];
  const proto::Command &command = *instance.command;
  const uint64_t bytes = byteCount(target);
  if (command.has_collective())
    return valueOfCollective(command.collective(), target, index);
  if (command.has_copy())
    return piecesOf(command.copy().source(), 0, bytes, instance.microbatch);
  if (isOptimizer(command))
    return updated(piecesOf(target, 0, bytes, instance.microbatch));
  if (const auto sums = result.added == Values::unknown ? copyOrSumOfSums(command, index) : std::nullopt)
    return *sums;
  if (!command.has_kernel() || !isSum(bufferOf(target)))
    return {{0, bytes, {}, false, result.value}};
  std::vector<Piece> pieces = {{0, bytes}};
  const Range range = rangeOf(target, instance.microbatch);
  for (const Effect &effect : effects)
    if (const Range other = rangeOf(*effect.operand, instance.microbatch);
        effect.reads && other.arena == range.arena && other.begin == range.begin && other.end == range.end)
      pieces = piecesOf(target, 0, bytes, instance.microbatch); // adds to what is there
  for (Piece &piece : pieces) {
    add(piece.terms, {instance.microbatch, false, result.added == Values::unknown ? result.value : result.added});
    piece.value = result.value;
    piece.valueByte = piece.begin;
  }
  return pieces;
}

/// Roles that share a parameter add up what each has summed. Their sums are of the same elements, micro-batch by
/// micro-batch; that together they are the gradient is the optimizer's to ask.
std::optional<std::vector<Piece>> Run::copyOrSumOfSums(const proto::Command &command, size_t index) {
  const bool copies = Meaning::isCopy(command.kernel());
  if (!copies && !Meaning::isAddition(command.kernel()))
    return std::nullopt;
  const Step step{part_.index, index};
  if (only_) // what it is made of may not be followed
    return part_.mail.sent.contains(step) ? std::optional(elsewhere(part_.mail.sent.at(step))[0]) : std::nullopt;
  const uint64_t microbatch = timeline_.instances[index].microbatch;
  std::vector<Piece> sums[2];
  for (int i = 0; i + 1 < command.kernel().operands_size(); ++i) {
    const proto::Operand &operand = command.kernel().operands(i);
    sums[i] = piecesOf(operand, 0, byteCount(operand), microbatch);
    if (std::ranges::any_of(sums[i], [](const Piece &one) { return one.terms.empty(); }))
      return std::nullopt;
  }
  for (const Piece &a : sums[0])
    for (const Piece &b : sums[1])
      if (a.begin < b.end && b.begin < a.end && a.valueByte - a.begin != b.valueByte - b.begin)
        refuse("coverage", index, "adds sums of other elements of a gradient to each other");
  std::vector<Piece> made = copies ? sums[0] : sumOf(sums[0], sums[1]);
  part_.mail.sent[step] = {made};
  return made;
}

/// What this rank has where the rank that was followed has these: the same sums, of other elements.
std::vector<std::vector<Piece>> Run::elsewhere(std::vector<std::vector<Piece>> pieces) {
  for (std::vector<Piece> &operand : pieces)
    for (Piece &piece : operand)
      piece.value = Values::unknown;
  return pieces;
}

std::vector<std::vector<Piece>> Run::received(size_t index) const {
  const Step &sender = part_.joint.senders.at({part_.index, index});
  requireSameMicrobatch(sender, index);
  return only_ ? elsewhere(part_.mail.sent.at(sender)) : part_.mail.sent.at(sender);
}

void Run::requireSameMicrobatch(const Step &sender, size_t index) const {
  const Instance &theirs = part_.joint.timelines[sender.role].instances[sender.instance];
  const Instance &own = timeline_.instances[index];
  const proto::Role &role = plan_.roles(int(sender.role));
  for (int i = 0; i < own.command->receive().targets_size(); ++i) {
    const auto scopes = {role.buffers(int(theirs.command->send().sources(i).buffer())).scope(),
                         bufferOf(own.command->receive().targets(i)).scope()};
    const bool bound = std::ranges::any_of(
        scopes, [](auto scope) { return scope == proto::Buffer::SLOT || scope == proto::Buffer::CALL; });
    if (bound && theirs.microbatch != own.microbatch)
      refuse("value", index,
             "receives for micro-batch " + std::to_string(own.microbatch) + " what " +
                 placeOf(plan_, role, program_.name(), theirs) + " sends of micro-batch " +
                 std::to_string(theirs.microbatch));
  }
}

std::vector<Piece> Run::updated(std::vector<Piece> pieces) {
  for (Piece &piece : pieces) {
    piece.terms.clear();
    piece.updated = true;
  }
  return pieces;
}

std::vector<Piece> Run::gathered(const proto::CollectivePart &part, uint64_t bytes, bool updated) {
  std::vector<Piece> pieces = {{0, bytes, {}, updated}};
  const proto::Buffer &source = bufferOf(part.source()), &target = bufferOf(part.target());
  const bool isWhole = target.has_bucket() && !target.shard() && bytes == target.bytes();
  const bool isOfShard = source.has_bucket() && source.shard() && byteCount(part.source()) == source.bytes();
  if (!isWhole && !isOfShard)
    return pieces;
  pieces[0].value = meaning_.values().padding();
  proto::Buffer whole = isWhole ? target : source;
  whole.set_shard(false);
  whole.set_bytes(bytes);
  for (const Member &member : Layout(plan_, whole, rank_).within(0, bytes))
    pieces.push_back(
        {member.begin, member.end, {}, updated, meaning_.values().variable(member.variable), member.firstByte});
  return pieces;
}

/// When the first role goes on, all have come, and nobody has written over their sources yet.
const std::vector<Piece> &Run::sourceOf(int part, const Instance &gather) {
  const auto [it, isNew] = part_.mail.gathered.try_emplace({part_.index, gather.call, gather.index, uint32_t(part)});
  const proto::Operand &source = gather.command->collective().parts(part).source();
  if (isNew)
    it->second = piecesOf(source, 0, byteCount(source), gather.microbatch);
  return it->second;
}

std::optional<std::vector<Piece>> Run::gatheredFromRoles(int part, size_t index) {
  const auto others = part_.joint.gathers.find({part_.index, index});
  if (only_ || others == part_.joint.gathers.end())
    return std::nullopt;
  const Instance &own = timeline_.instances[index];
  std::map<uint32_t, const std::vector<Piece> *> slices = {{rank_, &sourceOf(part, own)}};
  for (const auto &[role, instance] : others->second)
    slices[part_.runs[role]->rank_] = &part_.runs[role]->sourceOf(part, instance);
  const uint64_t bytes = byteCount(own.command->collective().parts(part).source());
  std::vector<Piece> pieces;
  for (uint32_t rank : plan::groupRanks(plan_, own.command->collective().communicator(), rank_)) {
    const uint64_t begin = pieces.empty() ? 0 : pieces.back().end;
    const auto slice = slices.find(rank); // of a rank that is not the first of its role nothing is known
    for (Piece piece : slice == slices.end() ? std::vector<Piece>{{0, bytes}} : *slice->second) {
      piece.begin += begin;
      piece.end += begin;
      pieces.push_back(piece);
    }
  }
  return pieces;
}

uint32_t Run::sumOf(uint32_t value, const proto::Command &command) {
  for (uint32_t reference : command.reference()) {
    const proto::ReferenceOp &op = plan_.reference().ops(int(reference));
    if (op.op() == "train.accumulate" &&
        (command.reference_size() == 1 || meaning_.values().of(op.operands(0)) == value))
      return meaning_.values().variable(op.variables(0));
  }
  return value;
}

int Run::partOf(const proto::CollectiveCommand &collective, const proto::Operand &target) {
  for (int i = 0; i < collective.parts_size(); ++i)
    if (&collective.parts(i).target() == &target)
      return i;
  return 0;
}

std::vector<Piece> Run::valueOfCollective(const proto::CollectiveCommand &collective, const proto::Operand &target,
                                          size_t index) {
  const uint64_t microbatch = timeline_.instances[index].microbatch;
  const int number = partOf(collective, target);
  const proto::CollectivePart &part = collective.parts(number);
  const uint64_t bytes = byteCount(target), sourceBytes = byteCount(part.source());
  const bool gathers = collective.kind() == proto::CollectiveCommand::ALL_GATHER;
  if (const auto pieces = gathers ? gatheredFromRoles(number, index) : std::nullopt)
    return *pieces;
  if (gathers) { // other ranks' slices are as this one's
    const std::vector<Piece> own = piecesOf(part.source(), 0, sourceBytes, microbatch);
    const bool updated = !own.empty() && std::ranges::all_of(own, [](const Piece &p) { return p.updated; });
    return gathered(part, bytes, updated);
  }
  if (collective.kind() == proto::CollectiveCommand::ALL_TO_ALL)
    return {Piece{0, bytes}}; // of other ranks' micro-batches: nothing is known of it
  const bool scatters = collective.kind() == proto::CollectiveCommand::REDUCE_SCATTER;
  const uint64_t skip = scatters ? plan::groupCoordinate(plan_, collective.communicator(), rank_) * bytes : 0;
  std::vector<Piece> pieces = piecesOf(part.source(), skip, bytes, microbatch);
  if (collective.kind() == proto::CollectiveCommand::BROADCAST)
    return pieces;
  for (Piece &piece : pieces)
    for (Term &term : piece.terms) {
      if (term.allRanks && isSum(bufferOf(part.source())))
        refuse("coverage", index,
               "sums over the ranks what is such a sum already: micro-batch " + std::to_string(term.microbatch) +
                   " in " + nameOf(part.source().buffer()));
      term.allRanks = sumsAllRanks(collective);
    }
  for (Piece &piece : pieces)
    piece.value = sumOf(piece.value, *timeline_.instances[index].command);
  return part.accumulate() ? sumOf(pieces, piecesOf(target, 0, bytes, microbatch)) : pieces;
}

std::vector<Piece> Run::sumOf(const std::vector<Piece> &a, const std::vector<Piece> &b) {
  std::vector<Piece> result;
  for (const Piece &x : a)
    for (const Piece &y : b) {
      const uint64_t begin = std::max(x.begin, y.begin), end = std::min(x.end, y.end);
      if (begin >= end)
        continue;
      Piece piece{begin, end, y.terms, false, x.value, x.valueByte + begin - x.begin};
      for (const Term &term : x.terms)
        add(piece.terms, term);
      result.push_back(std::move(piece));
    }
  return result;
}

} // namespace ds::check
