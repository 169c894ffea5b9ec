/*-------------------------------------------------------------------------
 *
 * device_requests.cu
 *	  Requests on their way from the caller to a thread of a CUDA device, and back.
 *
 *-------------------------------------------------------------------------
 */
#include "device/device_state.cuh"

namespace gpusort
{

void check_not_lost(GsDevice *device)
{
  if (!device->lost.load(std::memory_order_acquire))
    return;

  std::lock_guard<std::mutex> guard(device->lost_lock);

  throw Failure{GS_DEVICE_LOST, device->lost_error};
}

void check_usable(const GsDeviceSort *sort, const Request &request)
{
  check_not_lost(sort->device);
  if (request.misuse != nullptr)
    fail(GS_INVALID, "%s", request.misuse);
  if (sort->cancelled.load(std::memory_order_relaxed))
    fail(GS_CANCELLED, "the sort was cancelled");
}

void RequestQueue::push(const Request &request)
{
  {
    std::lock_guard<std::mutex> guard(lock);
    requests.push_back(request);
  }
  changed.notify_one();
}

bool RequestQueue::wait()
{
  std::unique_lock<std::mutex> guard(lock);

  changed.wait(guard, [&] { return !requests.empty() || poked || closed; });
  poked = false;
  return !requests.empty() || !closed;
}

void RequestQueue::poke()
{
  {
    std::lock_guard<std::mutex> guard(lock);
    poked = true;
  }
  changed.notify_one();
}

void RequestQueue::close()
{
  {
    std::lock_guard<std::mutex> guard(lock);
    closed = true;
  }
  changed.notify_all();
}

void end_request(const Request &request, const Failure &outcome)
{
  GsDevice *device = request.sort->device;
  GsJob *job = request.job;

  if (outcome.status == GS_DEVICE_LOST && !device->lost.load(std::memory_order_acquire))
  {
    std::lock_guard<std::mutex> guard(device->lost_lock);

    device->lost_error = outcome.error;
    device->lost.store(true, std::memory_order_release);
  }
  device->jobs_ended++;
  job->error = outcome.error;
  __atomic_store_n(&job->status, static_cast<int32_t>(outcome.status), __ATOMIC_RELEASE);
  if (device->config.notify != nullptr)
    device->config.notify(device->config.notify_arg);
}

} // namespace gpusort
