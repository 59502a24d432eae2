// Waits for all of them to end, also where one fails: what goes on unheeded would disturb what is measured next.

export async function allDone(promises) {
  const ends = await Promise.allSettled(promises);
  for (const { status, reason } of ends) if (status === 'rejected') throw reason;
  return ends.map(({ value }) => value);
}
