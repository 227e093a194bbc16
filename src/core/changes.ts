/**
 * News that may come faster than they are read.
 *
 * @module
 */

/**
 * Makes a function that sends news. They only say that something changed: while the other side has no room, the same
 * text is kept once, however often it comes, and what waits is bounded by what there is to change.
 */
export function newsTeller(send: (text: string) => Promise<void> | undefined): (text: string) => void {
  const late = new Set<string>();
  let isFull = false;

  return function tell(text) {
    if (isFull) return void late.add(text);
    const room = send(text);
    if (!room) return;
    isFull = true;
    room.then(() => {
      isFull = false;
      const texts = [...late];
      late.clear();
      texts.forEach(tell);
    });
  };
}
