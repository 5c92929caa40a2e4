// The app around the sale, in Russian.

import type { Age } from '../../lib/time';
import type { Catalogue } from '../en';

export const app: Pick<Catalogue, 'app' | 'nav' | 'top' | 'age' | 'chip' | 'keypad' | 'storage'> = {
  app: {
    name: 'Kassa',
    nav: 'Экраны',
    startFailed: 'Касса не открылась.',
    tryAgain: 'Ещё раз',
    outside: 'Касса работает в своём окне. Запустите программу Kassa.',
    close: 'Закрыть',
    copied: 'Скопировано',
    copy: 'Копировать',
    notCopied: 'Не скопировано. Выделите текст сами.',
    dismiss: 'Убрать',
  },
  nav: { sale: 'Продажа', payments: 'Платежи' },
  top: {
    language: 'Переключить на английский',
    languageCode: 'RU',
    theme: { system: 'Тема: как в системе', light: 'Тема: светлая', dark: 'Тема: тёмная' },
  },
  age: (age: Age): string => {
    switch (age.unit) {
      case 'second':
        return '<1 мин';
      case 'minute':
        return `${age.value} мин`;
      case 'hour':
        return `${age.value} ч`;
      case 'day':
        return `${age.value} дн`;
    }
  },
  chip: {
    label: (text: string) => `${text}. Открыть платежи`,
    ok: 'Всё проведено',
    busy: (n: number) => `Отправляем: ${n}`,
    waiting: (n: number, amounts: string, age: string | null) =>
      `Ждёт ответа: ${n}, ${amounts}${age === null ? '' : `, дольше всех ${age}`}`,
    waitingShort: (n: number) => `ждёт ответа: ${n}`,
    paused: (n: number) => (n === 0 ? 'Отправка на паузе' : `На паузе, ждёт: ${n}`),
    attention: (n: number) => `Нужно разобраться: ${n}`,
  },
  keypad: { label: 'Клавиатура', backspace: 'Стереть цифру', decimal: 'Запятая' },
  storage: {
    headline: 'Касса не может сохранять. Оплата заблокирована.',
    second: (reason: string) => `${reason}. Открытые чеки не пропадут.`,
    details: 'Подробнее',
    tryAgain: 'Проверить снова',
    detailsTitle: 'Почему касса не может сохранять',
    detailsHint: 'Освободите место или разрешите запись в папку. Оплата откроется сама.',
    folder: 'Папка',
    reason: 'Причина',
  },
};
