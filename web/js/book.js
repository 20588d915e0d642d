// An order book without the user's own orders. Nothing in it needs a browser.

/**
 * One side without the user's own: [{price, quantity, orders}], the best first; null where it is unknown. `own` is a
 * quantity, which says nothing of how many orders it is.
 */
export function othersOf(side) {
  if (!side) return null;
  return side.levels
    .map((level) => ({
      price: Number(level.unitPrice),
      quantity: Number(level.quantity) - Number(level.own),
      orders: level.orders - level.ownOrders,
    }))
    .filter((level) => level.orders > 0);
}
