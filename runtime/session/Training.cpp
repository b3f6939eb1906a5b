//===- Training.cpp - steps, evaluations, metrics, export -----------------===//
#include "runtime/session/Training.h"

#include "core/AtomicFile.h"
#include "core/Crc32c.h"
#include "core/DType.h"
#include "core/Error.h"
#include "core/Sha256.h"
#include "core/Status.h"
#include "kernels/KernelRegistry.h"
#include "runtime/checkpoint/StateShares.h"
#include "runtime/checkpoint/StoredState.h"
#include "runtime/comm/Transport.h"
#include "runtime/data/ArrivingData.h"
#include "runtime/data/Dataset.h"
#include "runtime/device/Device.h"
#include "runtime/executor/Executor.h"
#include "runtime/executor/VariableSources.h"
#include "runtime/flight/FlightFile.h"
#include "runtime/flight/FlightRecorder.h"
#include "runtime/plan/format/Lengths.h"
#include "runtime/plan/format/PlanFile.h"
#include "runtime/plan/format/PlanReader.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/run/Flops.h"
#include "runtime/plan/world/Mesh.h"
#include "runtime/session/DeviceChoice.h"
#include "runtime/session/EqualProcesses.h"
#include "runtime/session/ExportVariables.h"
#include "runtime/session/HostMemory.h"
#include "runtime/session/LocalRanks.h"
#include "runtime/session/MetricsFile.h"
#include "runtime/session/NonFinite.h"
#include "runtime/session/OutputPaths.h"
#include "runtime/session/ReplicaDigests.h"
#include "runtime/session/Resuming.h"
#include "runtime/session/RunId.h"
#include "runtime/session/Saving.h"
#include "runtime/session/SetValues.h"
#include "runtime/session/StateSnapshot.h"
#include "runtime/session/StepReport.h"
#include "runtime/session/TrainingData.h"
#include "runtime/session/TrainingOptions.h"
#include "runtime/session/TransportChoice.h"
#include "runtime/trace/Trace.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace ds::runtime {

namespace {

/// Samples that one run of the evaluation program takes, over all data-parallel ranks; all roles run as many
/// micro-batches.
uint64_t evaluationBatch(const plan::proto::Plan &plan, const Executor &executor) {
  uint64_t microbatches = 0;
  for (const plan::proto::Call &call : executor.role().programs(int(*executor.program("evaluate"))).calls())
    microbatches = std::max<uint64_t>(microbatches, call.microbatch() + 1);
  return microbatches * executor.position().batchRanks * plan.training().micro_batch_size();
}

/// How many of the `left` samples the next run of the evaluation program takes: a batch, or of the rest the most that
/// fill it when they are taken again and again. They are whole micro-batches as many times, or fill each micro-batch as
/// many times, so the run's mean is what a batch of them alone has, whatever the loss is, if it is one of means.
uint64_t evaluationShare(uint64_t left, uint64_t batch, uint64_t microbatch) {
  const uint64_t microbatches = batch / microbatch;
  for (uint64_t k = std::min(microbatches, left / microbatch); k > 0; --k)
    if (microbatches % k == 0)
      return k * microbatch;
  uint64_t part = std::min(left, microbatch);
  while (microbatch % part != 0)
    --part;
  return part;
}

/// How long nothing may move on a rank: longer than it may wait for the others, which then know better what is missing.
std::chrono::milliseconds patience(const TrainingOptions &options) {
  return std::max(options.collectiveTimeout, TrainingOptions().collectiveTimeout) + std::chrono::minutes(1);
}

/// "--data a, b and --eval-data c"
std::string namesOfData(const TrainingOptions &options) {
  std::string text;
  const auto add = [&](const char *flag, const std::vector<std::string> &files) {
    for (size_t i = 0; i < files.size(); ++i)
      text += (i > 0 ? ", " : (text.empty() ? "" : " and ") + std::string(flag) + " ") + files[i];
  };
  add("--data", options.data);
  add("--eval-data", options.evaluationData);
  return text.empty() ? "no data" : text;
}

double secondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void throwIfError(const Status &status) {
  if (!status.ok())
    throw Error(status.message());
}

} // namespace

/// Of rank 0, where it is one of this process's.
static Profile *profileOf(const TrainingOptions &options, const plan::proto::Plan &plan, const Transport &transport) {
  const auto local = transport.localRanks();
  return options.profile && !local.empty() && local[0] == 0 ? options.profile(plan) : nullptr;
}

int Training::threads() const {
  return options_.threads > 0 ? options_.threads : threadsFor(*plan_, transport_->localRanks());
}

Training::Work Training::workOf(const plan::proto::Plan &plan) {
  Work work{.modelFlops = plan::matmulFlopsPerStep(plan) * plan::batchRanks(plan)};
  for (const plan::proto::Input &input : plan.inputs())
    if (work.tokens == 0 && !input.tokens().empty())
      work.tokens = std::accumulate(input.shape().begin() + 1, input.shape().end(), uint64_t(1), std::multiplies<>());
  return work;
}

Training::Training(const TrainingOptions &options, const kernels::KernelRegistry &kernels)
    : options_(options), plan_(std::make_unique<plan::proto::Plan>(plan::readPlan(options.planPath))),
      transport_(chooseTransport(*plan_, options)) {
  const std::vector<uint64_t> each = plan::sizesOf(*plan_);
  for (const uint64_t size : each)
    work_[size] = workOf(plan::planOfSize(*plan_, size));
  if (each.empty())
    work_[0] = workOf(*plan_);
  *plan_ = plan::withProgramsOfAllSizes(*plan_);
  transport_->setTimeout(options.collectiveTimeout);
  beginFlight();
  now(HostState::Awaits, "compares its plan, flags and program with the other processes");
  requireEqualEverywhere(*transport_, *plan_, options_);
  now(HostState::Works, "looks for --resume");
  beginning_ = findBeginning(options_, *plan_, *transport_);
  notes_ = beginning_.notes;
  applySettings(*plan_, beginning_.manifest.set);
  now(HostState::Works, "makes room for the plan's memory");
  refuseOverwriting(options, *plan_);
  if (!options.trace.empty()) {
    requireWritableFolder(options.trace);
    trace_ = std::make_unique<Trace>();
  }
  const DeviceChoice device =
      options.makeDevice ? DeviceChoice{options.makeDevice, kernels}
                         : chooseDevice(*plan_, options.device, options.nvme, kernels, transport_->localRanks());
  const bool saves = !options.saving.folder.empty() && !options.evaluateOnly;
  if (saves)
    shares_ = std::make_unique<StateShares>(shareState(*plan_));
  ranks_ = std::make_unique<LocalRanks>(*plan_, *transport_, device.make, device.kernels,
                                        ExecutorOptions{.threads = threads(),
                                                        .hostKernels = &kernels,
                                                        .checkMemory = options.checkMemory,
                                                        .checkNumerics = options.checkNumerics,
                                                        .observers = options.observers,
                                                        .trace = trace_.get(),
                                                        .flight = options.flight,
                                                        .profile = profileOf(options, *plan_, *transport_),
                                                        .saved = shares_ ? &shares_->parts : nullptr,
                                                        .promisedBytes = promisedBytes(*plan_, *transport_, saves),
                                                        .patience = patience(options)},
                                        [this](const std::string &error) {
                                          if (options_.flight != nullptr)
                                            options_.flight->failed(error, transport_->missing());
                                          if (options_.onFailure)
                                            options_.onFailure(error);
                                        });
  if (const std::string note = ranks_->first().device().note(); !note.empty() && ranks_->hasRankZero())
    notes_.push_back(note);
  now(HostState::Works, "opens " + namesOfData(options));
  openData();
  if (!options.exportPath.empty())
    checkExport(*plan_, *ranks_, options.exportPath);
  if (ranks_->first().device().executes())
    loadVariables();
  else if (!options.saving.folder.empty() || !beginning_.checkpoint.empty())
    throw Error("--save and --resume need a device that computes; the null device has no state");
  if (shares_)
    saving_ =
        std::make_unique<Saving>(*plan_, *shares_, *ranks_, *transport_, options.saving, options.planPath, beginning_);
  metrics_ = std::make_unique<MetricsFile>(hasRankZero() ? options.metrics : "", !beginning_.checkpoint.empty());
  if (hasRankZero() && !options.metrics.empty())
    metrics_->identify(hexOf(sha256OfFile(options.planPath)), saving_ ? saving_->run() : newRunId());
  if (!metrics_->movedTo().empty())
    notes_.push_back("the metrics file of an older run, " + options.metrics + ", is " + metrics_->movedTo() + " now");
}

void Training::loadVariables() {
  const std::string from = !beginning_.checkpoint.empty() ? "checkpoint " + beginning_.checkpoint
                           : options_.weights.empty()     ? "the plan's weight files"
                                                          : "--weights " + options_.weights;
  now(HostState::Works, "opens " + from);
  std::optional<StoredState> stored;
  if (!beginning_.checkpoint.empty())
    stored.emplace(beginning_.checkpoint, beginning_.manifest, *plan_, transport_->localRanks());
  const VariableSources sources(*plan_, {.planFolder = std::filesystem::path(options_.planPath).parent_path().string(),
                                         .weightsPath = options_.weights,
                                         .seed = beginning_.manifest.seed,
                                         .stored = stored ? &stored->variables() : nullptr,
                                         .threads = std::thread::hardware_concurrency()});
  requireEqualInputs(sources.weightsDigest());
  now(HostState::Works, "reads first values from " + from);
  ranks_->initialize(sources);
  unusedWeights_ = sources.unusedNames();
  if (hasRankZero())
    for (const std::string &note : sources.notes())
      notes_.push_back(note);
  if (replicaDigestInterval(*plan_, options_) > 0 && ranks() > 1)
    replicas_ = std::make_unique<ReplicaDigests>(*plan_, *ranks_, *transport_);
  for (const uint32_t rank : transport_->localRanks())
    if (options_.onNonFinite == OnNonFinite::Skip && !options_.evaluateOnly)
      snapshots_.emplace_back(*ranks_->find(rank), "step");
}

void Training::beginFlight() const {
  if (options_.flight == nullptr)
    return;
  std::random_device random;
  uint64_t id = uint64_t(random()) << 32 | random(); // rank 0's counts
  int64_t ahead = 0;
  for (uint32_t rank = 1; rank < ranks(); ++rank) {
    transport_->copy(0, rank, std::as_writable_bytes(std::span(&id, 1)));
    int64_t clock = wallMs(); // both are there now, so it arrives at once
    transport_->copy(0, rank, std::as_writable_bytes(std::span(&clock, 1)));
    if (rank == transport_->localRanks()[0])
      ahead = clock - wallMs();
  }
  std::vector<std::string> data = options_.data;
  data.insert(data.end(), options_.evaluationData.begin(), options_.evaluationData.end());
  const std::string plan = plan::framePlan(*plan_);
  options_.flight->begin(
      {.folder = options_.flightFolder.empty() ? flightFolder(options_.planPath) : options_.flightFolder,
       .id = std::to_string(id),
       .ranks = ranks(),
       .plan = crc32c(std::as_bytes(std::span(plan))),
       .data = data,
       .clockMs = ahead});
}

void Training::now(HostState state, std::string_view work, uint64_t step) const {
  if (options_.flight != nullptr)
    options_.flight->hostNow(state, work, step);
}

/// The same flags may name other files on another host.
void Training::requireEqualInputs(uint64_t weights) const {
  if (transport_->localRanks().size() == transport_->ranks())
    return;
  now(HostState::Works, "reads " + namesOfData(options_) + " to compare it with the other processes");
  const Dataset *const training = data_->training(), *const evaluation = data_->evaluation();
  const uint64_t data = training ? training->digest() : 0, evaluationData = evaluation ? evaluation->digest() : 0;
  now(HostState::Awaits, "compares its data and weights with the other processes");
  transport_->requireEqual("what --weights names", weights);
  transport_->requireEqual("what --data names", data);
  transport_->requireEqual("what --eval-data names", evaluationData);
}

void Training::openData() {
  const bool evaluates = options_.evaluateOnly || !options_.evaluationData.empty();
  if (!options_.evaluateOnly && !ranks_->first().program("step"))
    throw Error("plan " + options_.planPath + " has no program step, so it cannot train; try --eval");
  if (evaluates && !ranks_->first().program("evaluate"))
    throw Error("plan " + options_.planPath + " has no program evaluate; compile it again");
  if (dataArrives(options_) && transport_->localRanks().size() != ranks())
    throw Error("--data - reads the stdin of one process, and this run has " + std::to_string(ranks()) +
                "; start ds-run without a launcher, and it runs all ranks");
  data_ = std::make_unique<TrainingData>(options_, *plan_, beginning_);
  if (const std::string note = data_->noteOfUnread(); !note.empty() && hasRankZero())
    notes_.push_back(note);
  steps_ = data_->steps();
  if (!options_.evaluateOnly && beginning_.manifest.step > 0 && beginning_.manifest.step >= steps_)
    notes_.push_back("checkpoint " + beginning_.checkpoint + " has " + std::to_string(beginning_.manifest.step) +
                     " steps done, and --steps " + std::to_string(steps_) + " asks for no more");
  checkData();
}

uint64_t Training::stepsLeft() const { return steps_ - std::min(steps_, beginning_.manifest.step); }

std::string Training::epochs() const { return data_->epochs(stepsLeft()); }

/// By the process with rank 0 alone: what others read is compared with it.
void Training::checkData() const {
  if (options_.checkData == 0 || !hasRankZero())
    return;
  now(HostState::Works, "looks at the values in " + namesOfData(options_));
  data_->check(stepsLeft());
}

void Training::run(TrainingObserver &observer, const std::atomic<bool> &stop) {
  transport_->setStopFlag(stop);
  try {
    runAll(observer, stop);
  } catch (const StoppedAndSaved &) {
    endTogether(observer);
    throw;
  } catch (const Error &error) {
    transport_->stop(Status::failure("%s", error.what())); // so that no other process waits for this one
    writeTrace(/*together=*/false, observer);              // what a run did before it failed is worth most
    throw;
  }
  endTogether(observer);
}

void Training::endTogether(TrainingObserver &observer) {
  writeTrace(/*together=*/true, observer);
  throwIfError(ranks_->failure()); // of another process, which will not come to the end
  now(HostState::Awaits, "ends the run together with the other processes");
  transport_->finish();
}

void Training::writeTrace(bool together, TrainingObserver &observer) const {
  if (!trace_)
    return;
  const std::string mine = trace_->events();
  std::string all = mine;
  for (uint32_t rank = 1; rank < ranks() && together; ++rank) {
    const bool isMine =
        rank == ranks_->first().position().rank; // the first rank of a process stands for all of its rows
    uint64_t bytes = isMine ? mine.size() : 0;
    transport_->copy(rank, 0, std::as_writable_bytes(std::span(&bytes, 1)));
    std::string theirs = isMine ? mine : std::string(hasRankZero() ? bytes : 0, ' ');
    transport_->copy(rank, 0, std::as_writable_bytes(std::span(theirs)));
    all += theirs;
  }
  if (!hasRankZero())
    return;
  try {
    writeFileAtomically(options_.trace, chromeTrace(all));
  } catch (const Error &error) { // the training is worth more
    observer.noted(error.what());
  }
}

/// What metrics cannot be written is said once and ends nothing.
void Training::tell(const Status &metrics, TrainingObserver &observer) noexcept {
  if (!metrics.ok() && !std::exchange(metricsLost_, true))
    observer.noted(metrics.message());
}

void Training::runAll(TrainingObserver &observer, const std::atomic<bool> &stop) {
  const uint64_t begin = beginning_.manifest.step;
  compareReplicas(begin);
  if (options_.evaluateOnly)
    evaluate(begin, observer, stop);
  for (uint64_t done = begin; done < steps_;) {
    const std::optional<ArrivingData::Samples> samples = samplesOf(done, stop);
    if (!samples) {
      endOfData(done, observer, stop);
      break;
    }
    if (const std::string note = data_->arrives() ? data_->noteOfUnread(*samples->data) : ""; !note.empty())
      observer.noted(note.c_str());
    step(++done, *samples, observer);
    const bool more = done < steps_ || evaluationIsDue(done); // the export looks for itself
    const bool asked = settle(done, (stop || timeIsUp()) && more, observer);
    compareReplicas(done);
    if (asked)
      endAsAsked(done, place(done), observer);
    const auto saves = std::chrono::steady_clock::now();
    saveIfDue(done, observer);
    if (done < steps_) // else the last save is to come
      observer.saved(secondsSince(saves));
    if (evaluationIsDue(done))
      evaluate(done, observer, stop);
  }
  const auto saves = std::chrono::steady_clock::now();
  saveNow(std::max(begin, steps_), observer); // a run without a step lays a checkpoint out for its ranks
  observer.saved(secondsSince(saves));
  now(HostState::Awaits, "gathers the summary of all processes");
  tell(metrics_->write(summaries()), observer);
  if (!options_.exportPath.empty()) {
    now(hasRankZero() ? HostState::Works : HostState::Awaits,
        (hasRankZero() ? "writes --export " : "hands rank 0 the weights of --export ") + options_.exportPath);
    exportVariables(*plan_, *ranks_, *transport_,
                    {.path = options_.exportPath,
                     .elsewhere = exportsElsewhere(options_.exportPath, options_.planPath),
                     .allowNonFinite = options_.onNonFinite == OnNonFinite::Continue},
                    stop);
  }
  if (!unsaved_.empty())
    throw Error(unsaved_);
}

/// Of the step after so many, which is where a run may wait for its data.
std::optional<ArrivingData::Samples> Training::samplesOf(uint64_t stepsDone, const std::atomic<bool> &stop) const {
  if (data_->arrives())
    now(HostState::Awaits, "waits for the name of a data file on stdin after step", stepsDone);
  return data_->samplesOf(stepsDone, [&] { return stop || timeIsUp(); });
}

/// No name follows on stdin, so the last step was the last, or the run was asked to end while it waited for one.
void Training::endOfData(uint64_t stepsDone, TrainingObserver &observer, const std::atomic<bool> &stop) {
  if (stop || timeIsUp())
    endAsAsked(stepsDone, place(stepsDone), observer);
  if (steps_ != TrainingData::untilEnd)
    observer.noted(("--data - ended " + place(stepsDone)).c_str());
  const bool evaluated = evaluationIsDue(stepsDone);
  steps_ = stepsDone;
  compareReplicas(stepsDone);
  if (!evaluated && evaluationIsDue(stepsDone))
    evaluate(stepsDone, observer, stop);
}

/// "after step 3 of 9"
std::string Training::place(uint64_t stepsDone) const {
  return "after step " + std::to_string(stepsDone) + (steps() ? " of " + std::to_string(*steps()) : "");
}

void Training::endAsAsked(uint64_t stepsDone, const std::string &where, TrainingObserver &observer) {
  if (options_.flight != nullptr)
    options_.flight->rest();
  tell(metrics_->write(summaries()), observer);
  const std::string stopped = (timeIsUp() ? "stopped by --max-time " : "stopped by a signal ") + where;
  if (!saving_)
    throw Error(stopped +
                (options_.evaluateOnly ? "" : "; nothing was saved or exported; --save DIR saves before such an end"));
  saveNow(stepsDone, observer);
  if (!unsaved_.empty())
    throw Error(stopped + ", but " + unsaved_);
  throw StoppedAndSaved(stopped + "; --resume " + options_.saving.folder + " goes on from there");
}

bool Training::timeIsUp() const {
  return options_.maxTime && std::chrono::steady_clock::now() - made_ >= *options_.maxTime;
}

void Training::saveIfDue(uint64_t stepsDone, TrainingObserver &observer) {
  if (!saving_)
    return;
  saving_->poll();
  if (stepsDone >= steps_ || !saving_->isDue(stepsDone))
    return; // the last is saved when the run is over
  now(HostState::Works, "begins a checkpoint after step", stepsDone);
  tell(saving_->begin(stepsDone), observer);
  if (saving_->isBlocking())
    tell(saving_->wait(), observer);
}

/// All that there is to know about the state after so many steps is on the disk, or `unsaved_` says why not.
void Training::saveNow(uint64_t stepsDone, TrainingObserver &observer) {
  if (!saving_)
    return;
  now(HostState::Works, "saves a checkpoint after step", stepsDone);
  tell(saving_->wait(), observer);
  if (saving_->has(stepsDone))
    return;
  (void)saving_->begin(stepsDone);
  const Saving::Outcome outcome = *saving_->wait();
  if (!outcome.saved)
    unsaved_ = "the last checkpoint was not saved: " + std::string(outcome.problem.message());
  else
    tell(outcome, observer);
}

void Training::tell(const std::optional<Saving::Outcome> &outcome, TrainingObserver &observer) const {
  if (!outcome || outcome->problem.ok() || !hasRankZero())
    return;
  const std::string which = "the checkpoint after step " + std::to_string(outcome->step);
  observer.noted(
      (which + (outcome->saved ? " is saved, but " : " was not saved: ") + outcome->problem.message()).c_str());
}

/// What all processes do alike after a step or an evaluation. Returns whether one of them was asked to stop.
bool Training::settle(uint64_t stepsDone, bool stop, TrainingObserver &observer) {
  now(HostState::Awaits, "waits for the other processes after step", stepsDone);
  const bool any = transport_->anyOf(stop || nonFinite_.found());
  throwIfError(ranks_->failure()); // of another process, before this one's step was over
  if (!any)
    return false;
  nonFinite_.shareFromRankZero(*transport_);
  const NonFinite found = std::exchange(nonFinite_, {});
  if (found.found() && options_.onNonFinite == OnNonFinite::Stop) {
    if (options_.flight != nullptr)
      options_.flight->rest();
    tell(metrics_->write(summaries()), observer);
    throw found.error(stepsDone);
  }
  const bool undo = found.found() && found.metric != NonFinite::Metric::EvaluationLoss;
  for (const StateSnapshot &snapshot : snapshots_)
    if (undo)
      snapshot.restore();
  if (undo && !snapshots_.empty() && hasRankZero())
    observer.noted(("step " + std::to_string(stepsDone) + " was undone: its " + found.what()).c_str());
  return transport_->anyOf(stop);
}

void Training::compareReplicas(uint64_t stepsDone) const {
  if (!replicas_ || (stepsDone != steps_ && stepsDone % replicaDigestInterval(*plan_, options_) != 0))
    return;
  now(HostState::Awaits, "compares replicas with the other processes after step", stepsDone);
  replicas_->compare(stepsDone);
}

bool Training::evaluationIsDue(uint64_t stepsDone) const {
  if (!data_->evaluation())
    return false;
  return stepsDone == steps_ || (options_.evaluationInterval > 0 && stepsDone % options_.evaluationInterval == 0);
}

void Training::step(uint64_t number, ArrivingData::Samples samples, TrainingObserver &observer) {
  for (StateSnapshot &snapshot : snapshots_)
    snapshot.take();
  const auto begin = std::chrono::steady_clock::now();
  now(HostState::Queues, "step", number);
  const uint64_t size = samples.data->sizeFor(samples.first, samplesPerStep()); // every process reads the same data
  const std::string name = plan::programOfSize("step", *plan_, size);
  const uint64_t redone = ranks_->stepsRedone();
  throwIfError(ranks_->execute(
      name,
      {.seed = beginning_.manifest.seed, .step = number - 1, .data = samples.data, .firstSample = samples.first}));
  if (!hasRankZero())
    return;
  const Executor &executor = ranks_->first();
  const uint32_t program = *executor.program(name);
  StepReport report{.step = number,
                    .loss = executor.metric(program, "loss"),
                    .gradientNorm = executor.metric(program, "grad_norm"),
                    .learningRate = executor.metric(program, "lr"),
                    .lossScale = executor.metric(program, "loss_scale"),
                    .targets = executor.metric(program, "targets"),
                    .length = size,
                    .redone = ranks_->stepsRedone() > redone};
  const std::optional<Scalar> skipped = executor.metric(program, "skipped"); // 2: at the least scale
  report.skipped = skipped && skipped->asDouble() >= 1;
  report.scaleIsLeast = skipped && skipped->asDouble() >= 2;
  nonFinite_ = NonFinite::of(report);
  report.skipped = report.skipped || (nonFinite_.found() && !snapshots_.empty());
  report.seconds = secondsSince(begin);
  report.samplesPerSecond = report.seconds > 0 ? double(samplesPerStep()) / report.seconds : 0;
  report.tokensPerSecond = double(work_.at(size).tokens) * report.samplesPerSecond;
  // What is computed again does not count: the MFU of PaLM (Chowdhery et al., arXiv 2204.02311).
  report.modelFlopsPerSecond = report.seconds > 0 ? double(work_.at(size).modelFlops) / report.seconds : 0;
  if (options_.peakTflops > 0)
    report.modelFlopsUtilization =
        report.modelFlopsPerSecond / (options_.peakTflops * 1e12 * double(plan::worldSize(*plan_)));
  tell(metrics_->write(report), observer);
  observer.stepDone(report);
}

void Training::evaluate(uint64_t stepsDone, TrainingObserver &observer, const std::atomic<bool> &stop) {
  const uint64_t batch = evaluationBatch(*plan_, ranks_->first());
  const Dataset &data = *data_->evaluation();
  const uint64_t samples = data.samples();
  EvaluationReport report{.step = stepsDone, .loss = std::nullopt};
  double sum = 0, weights = 0; // of batches: their targets where the plan counts them, else 1 each
  for (uint64_t first = 0; first < samples;) {
    now(HostState::Queues, "the evaluation after step", stepsDone);
    const uint64_t taken = evaluationShare(samples - first, batch, plan_->training().micro_batch_size());
    const std::string name = plan::programOfSize("evaluate", *plan_, data.sizeFor(first, taken));
    throwIfError(ranks_->execute(name, {.seed = beginning_.manifest.seed,
                                        .step = stepsDone,
                                        .data = &data,
                                        .firstSample = first,
                                        .again = taken == batch ? 0 : taken}));
    first += taken;
    const Executor &executor = ranks_->first();
    const uint32_t program = *executor.program(name);
    const auto targets = executor.metric(program, "targets");
    const double share = double(taken) / double(batch); // of the run
    report.loss = executor.metric(program, "loss");
    sum += report.loss ? share * report.loss->asDouble() : 0;
    weights += share * (targets ? targets->asDouble() : 1);
    if (settle(stepsDone, (stop || timeIsUp()) && first < samples, observer))
      endAsAsked(stepsDone, "during the evaluation after step " + std::to_string(stepsDone), observer);
  }
  if (report.loss && weights != 1)
    report.loss = Scalar{.dtype = DType::F64, .number = sum / weights};
  if (hasRankZero()) {
    nonFinite_ = NonFinite::of(report);
    tell(metrics_->write(report), observer);
    observer.evaluated(report);
  }
  (void)settle(stepsDone, /*stop=*/false, observer);
}

std::vector<SummaryReport> Training::summaries() const {
  std::vector<SummaryReport> reports(ranks());
  for (uint32_t rank = 0; rank < ranks(); ++rank) {
    reports[rank] = ranks_->summary(rank);
    transport_->copy(rank, 0, std::as_writable_bytes(std::span(&reports[rank], 1)));
  }
  return reports;
}

} // namespace ds::runtime
