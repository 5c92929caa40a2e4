// Articles for the in-memory till.

import type { Article, Category } from './types';

type Row = [sku: string, name: string, price: number, unit?: 'weight' | 'piece', favourite?: 'favourite'];

const shelves: { id: string; name: string; colour: string; taxRate: string; rows: Row[] }[] = [
  {
    id: 'hot-drinks',
    name: 'Hot drinks',
    colour: '#7a4a21',
    taxRate: '20',
    rows: [
      ['1001', 'Espresso', 220, 'piece', 'favourite'],
      ['1002', 'Cappuccino', 340, 'piece', 'favourite'],
      ['1003', 'Flat white', 380],
      ['1004', 'Filter coffee', 260, 'piece', 'favourite'],
      ['1005', 'Hot chocolate', 390],
      ['1006', 'Earl Grey tea', 249, 'piece', 'favourite'],
      ['1007', 'Fresh mint tea', 290],
    ],
  },
  {
    id: 'cold-drinks',
    name: 'Cold drinks',
    colour: '#1f6f78',
    taxRate: '20',
    rows: [
      ['2001', 'Still water 0.5 l', 150, 'piece', 'favourite'],
      ['2002', 'Sparkling water 0.5 l', 160],
      ['2003', 'Apple juice, cloudy, pressed on the farm 0.33 l', 280],
      ['2004', 'Rhubarb spritzer', 320],
      ['2005', 'Cola 0.33 l', 260],
      ['2006', 'Iced tea, peach', 310],
    ],
  },
  {
    id: 'bakery',
    name: 'Bakery',
    colour: '#9a5b00',
    taxRate: '10',
    rows: [
      ['3001', 'Butter croissant', 210, 'piece', 'favourite'],
      ['3002', 'Almond croissant', 290],
      ['3003', 'Cinnamon bun', 280, 'piece', 'favourite'],
      ['3004', 'Rye loaf 750 g', 520],
      ['3005', 'Sourdough baguette', 340],
      ['3006', 'Seeded roll', 95],
      ['3007', 'Apple strudel, slice', 360],
    ],
  },
  {
    id: 'kitchen',
    name: 'Kitchen',
    colour: '#8a2f4b',
    taxRate: '10',
    rows: [
      ['4001', 'Tomato soup with bread', 650],
      ['4002', 'Grilled cheese sandwich', 720, 'piece', 'favourite'],
      ['4003', 'Chicken wrap', 790],
      ['4004', 'Lentil salad', 680],
      ['4005', 'Quiche of the day', 590],
      ['4006', 'Porridge with berries', 480],
    ],
  },
  {
    id: 'produce',
    name: 'Fruit and vegetables',
    colour: '#2e6b34',
    taxRate: '10',
    rows: [
      ['5001', 'Bananas', 199, 'weight', 'favourite'],
      ['5002', 'Apples, Braeburn', 299, 'weight'],
      ['5003', 'Vine tomatoes', 449, 'weight'],
      ['5004', 'Avocado', 150],
      ['5005', 'Lemon', 60],
      ['5006', 'Carrots', 179, 'weight'],
    ],
  },
  {
    id: 'pantry',
    name: 'Pantry',
    colour: '#1f5f8b',
    taxRate: '20',
    rows: [
      ['6001', 'Olive oil 0.5 l', 1190],
      ['6002', 'Wildflower honey 500 g', 890],
      ['6003', 'Strawberry jam', 450],
      ['6004', 'Oat biscuits', 320],
      ['6005', 'Dark chocolate 70 %', 290, 'piece', 'favourite'],
      ['6006', 'Coffee beans, house blend 250 g', 995],
      ['6007', 'Sea salt', 230],
      ['6008', 'Paper bag', 20],
    ],
  },
];

export const demoCategories: Category[] = shelves.map(({ id, name, colour, rows }) => ({ id, name, colour, count: rows.length }));

export const demoArticles: Article[] = shelves.flatMap(({ id, colour, taxRate, rows }) =>
  rows.map(([sku, name, price, unit, favourite]) => ({
    sku,
    name,
    price,
    openPrice: false,
    category: id,
    colour,
    unit: unit ?? 'piece',
    favourite: favourite !== undefined,
    taxRate,
  })),
);

/** So many articles, for a look at a large catalogue. */
export function manyArticles(count: number): Article[] {
  return Array.from({ length: count }, (_, at): Article => {
    const like = demoArticles[at % demoArticles.length] as Article;
    return at < demoArticles.length ? like : { ...like, sku: `${10_000 + at}`, name: `${like.name} no. ${at}`, favourite: false };
  });
}
